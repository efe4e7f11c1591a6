use super::*;

#[test]
fn days_have_the_dates_of_the_calendar() {
    for (number, date_of_it) in [
        (0, (1970, 1, 1)),
        (-1, (1969, 12, 31)),
        (11_016, (2000, 2, 29)),
        (11_017, (2000, 3, 1)),
        (20_782, (2026, 11, 25)),
        (-719_528, (0, 1, 1)),
    ] {
        assert_eq!(date(number), date_of_it);
    }
}

#[test]
fn each_date_of_the_years_with_four_digits_has_its_day() {
    for number in -719_528..=2_932_896 {
        let (year, month, of_month) = date(number);
        let year = u16::try_from(year).unwrap();
        let (month, of_month) = (
            u8::try_from(month).unwrap(),
            u8::try_from(of_month).unwrap(),
        );
        assert_eq!(day(year, month, of_month), number);
    }
    assert_eq!(date(2_932_896), (9999, 12, 31));
}
