use super::class_of;

#[test]
fn class_is_found_in_every_form_of_type_name() {
    let cases = [
        ("shop::cart::total::here", "shop.cart"),
        ("shop::total::{{closure}}::here", "shop"),
        ("shop::Cart<_>::add::{{closure}}::here", "shop.Cart"),
        (
            "shop::Cart<u8, alloc::string::String>::add::here",
            "shop.Cart",
        ),
        (
            "shop::rules::<impl shop::Cart<u64>>::check::here",
            "shop.Cart",
        ),
        (
            "shop::rules::<impl shop::Priced<u8> for shop::Cart>::price::here",
            "shop.Cart",
        ),
        (
            "<shop::Cart<_> as shop::Priced<_>>::price::here",
            "shop.Cart",
        ),
        (
            "<shop::Cart<{3+1}> as shop::Priced>::price::here",
            "shop.Cart",
        ),
        (
            "<&mut shop::Cart as shop::Priced>::price::here",
            "shop.Cart",
        ),
        ("<&str as shop::Priced>::price::here", "str"),
        ("<_ as shop::Priced>::price::here", "shop.Priced"),
        ("<[u8] as shop::Priced>::price::here", "shop.Priced"),
        (
            "<(u8, alloc::vec::Vec<u8>) as shop::Priced>::price::here",
            "shop.Priced",
        ),
        (
            "<dyn core::ops::function::Fn(u8) -> u8 as shop::Priced>::price::here",
            "core.ops.function.Fn",
        ),
        ("shop::Priced::discount::here", "shop.Priced"),
        ("shop::outer::{{closure}}::inner::here", "shop.outer"),
        ("main::main::here", "main"),
    ];
    for (type_name, class) in cases {
        assert_eq!(class_of(type_name), class, "{type_name}");
    }
}

#[test]
fn strange_type_names_do_no_harm() {
    for type_name in [
        "",
        "::",
        "<",
        ">",
        "<>",
        "<impl ",
        "a::<",
        "<<as>>::x",
        "ä::ö::ü",
    ] {
        let class = class_of(type_name);
        assert!(!class.contains(['(', ' ', '<']), "{type_name}: {class}");
    }
}
