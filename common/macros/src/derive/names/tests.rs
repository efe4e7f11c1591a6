use super::*;

#[test]
fn identifiers_are_spelled_in_every_case() {
    for (name, camel, snake) in [
        (
            "operation_signature",
            "operationSignature",
            "operation_signature",
        ),
        ("tin", "tin", "tin"),
        ("sessionId", "sessionId", "session_id"),
        ("_x_1", "x1", "x_1"),
        ("GcPause", "gcPause", "gc_pause"),
    ] {
        assert_eq!(Case::Camel.apply(name), camel);
        assert_eq!(Case::Snake.apply(name), snake);
    }
    assert_eq!(Case::Pascal.apply("own_type"), "OwnType");
    assert_eq!(Case::ScreamingSnake.apply("OwnType"), "OWN_TYPE");
}

#[test]
fn nearest_choice_is_named_and_all_when_none_is_near() {
    let known = ["rename", "alias"];
    assert_eq!(
        unknown("attribute", "renam", &known),
        "unknown attribute `renam`; did you mean `rename`?"
    );
    assert_eq!(
        unknown("attribute", "zzz", &known),
        "unknown attribute `zzz`; known: rename, alias"
    );
}
