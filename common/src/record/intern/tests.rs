use super::*;

#[test]
fn equal_strings_share_a_handle() {
    let a = Interned::new("intern::tests::a");
    let b = Interned::new("intern::tests::b");
    assert_eq!(a, Interned::new("intern::tests::a"));
    assert_ne!(a, b);
    assert_eq!(b.as_str(), "intern::tests::b");
    let made = format!("intern::tests::{}", 'b');
    assert_eq!(Interned::leaked(&made), b);
    assert_eq!(
        Interned::leaked("intern::tests::c").as_str(),
        "intern::tests::c"
    );
}
