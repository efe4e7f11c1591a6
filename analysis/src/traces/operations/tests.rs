use super::*;

#[test]
fn a_signature_has_a_component_and_a_name() {
    for (signature, component, name) in [
        (
            "public void a.b.C.d(java.lang.String, int)",
            "a.b.C",
            "d(..)",
        ),
        ("a.b.C.d()", "a.b.C", "d()"),
        (
            "bool shop::cart::add(&mut Cart, u32)",
            "shop::cart",
            "add(..)",
        ),
        ("public new a.b.C.<init>()", "a.b.C", "<init>()"),
        ("void a.b.C$1.run() throws a.b.E", "a.b.C$1", "run()"),
        ("noOperation", "", "noOperation"),
        ("", "", ""),
    ] {
        let (split, short) = split(signature);
        assert_eq!((split, &*short), (component, name), "{signature}");
    }
}

#[test]
fn an_operation_has_one_number_a_host_however_its_class_is_told() {
    let mut operations = Operations::default();
    let signature = operations.text("void a.C.d()");
    let (class, sub) = (operations.text("a.C"), operations.text("a.Sub"));
    let plain = operations.kind(None, signature);
    assert_eq!(operations.kind(Some(class), signature), plain);
    assert_eq!(operations.kind(Some(class), signature), plain);
    assert_ne!(operations.kind(Some(sub), signature), plain);
    let (one, two) = (operations.text("one"), operations.text("two"));
    let here = operations.id(one, plain);
    assert_eq!(operations.id(one, plain), here);
    assert_ne!(operations.id(two, plain), here);
    assert_eq!(operations.get(here).unwrap().host, "one");
}

#[test]
fn a_full_signature_has_the_class_of_the_object() {
    for (signature, class, full) in [
        ("public void a.C.d(int)", "a.C", "public void a.C.d(int)"),
        (
            "public void a.C.d(int)",
            "b.Sub",
            "public void b.Sub.d(int)",
        ),
        ("a.C.d()", "b.Sub", "b.Sub.d()"),
        ("void d()", "b.Sub", "void b.Sub.d()"),
        ("bool shop::cart::add(u32)", "till", "bool till::add(u32)"),
    ] {
        let mut operations = Operations::default();
        let [text, class] = [signature, class].map(|text| operations.text(text));
        let kind = operations.kind(Some(class), text);
        assert_eq!(operations.of_kind(kind).full_signature(), full);
    }
}

#[test]
#[should_panic(expected = "the number is from these operations")]
fn the_number_of_another_analysis_is_not_the_first_operation() {
    Operations::default().operation(OperationId(7));
}
