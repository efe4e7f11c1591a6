use super::*;

#[test]
fn operations_are_shortened_to_what_tells_them_apart() {
    for (signature, short) in [
        (
            "bookstoreTracing.Catalog.getBook(boolean)",
            "Catalog.getBook",
        ),
        ("public void a.b.C.d(java.lang.String, int)", "C.d"),
        (
            "bool baler::demo::shop::cart::add(&mut Cart, u32)",
            "cart::add",
        ),
        ("main()", "main"),
        ("noOperation", "noOperation"),
        ("", ""),
    ] {
        assert_eq!(short_operation(signature), short, "{signature}");
    }
}

#[test]
#[should_panic(expected = "the document has this count")]
fn a_table_does_not_show_a_missing_count_as_zero() {
    let operation = serde_json::json!({ "operation": "a.b.C.d()", "calls": 3 });
    operations_table([&operation]);
}
