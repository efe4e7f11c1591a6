//! Days since 1970 and their dates, by Howard Hinnant's `civil_from_days` and `days_from_civil`
//! (<https://howardhinnant.github.io/date_algorithms.html>).

/// The day of 1970-01-01, counted from the first of March of the year 0.
const DAY_OF_1970: i64 = 719_468;

/// Returns the year, month and day of a day that is counted from 1970.
pub fn date(day: i64) -> (i64, i64, i64) {
    let day = day + DAY_OF_1970;
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + day.div_euclid(146_097) * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// Returns the day of a date, counted from 1970.
pub fn day(year: u16, month: u8, day: u8) -> i64 {
    let (year, month) = (i64::from(year), i64::from(month));
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + i64::from(day) - 1 - DAY_OF_1970
}

#[cfg(test)]
mod tests;
