use super::*;

/// A span whose operation has the number of its id.
fn span(id: u64, parent: u64, start: i64, end: i64) -> Span {
    Span {
        start,
        id,
        parent,
        end,
        operation: OperationId(u32::try_from(id).unwrap()),
        failed: id == 3,
    }
}

/// 1 calls 2 and 4, 2 calls 3.
fn whole() -> Vec<Span> {
    vec![
        span(1, 0, 0, 100),
        span(2, 1, 10, 40),
        span(3, 2, 20, 30),
        span(4, 1, 40, 60),
    ]
}

/// Returns the operation and the depth of each call, and the number of spans without parent.
fn shape(mut spans: Vec<Span>) -> Result<(Vec<(u32, i32)>, u64), Reason> {
    spans.sort_unstable();
    let (calls, without_parent) = calls(&spans)?;
    assert!(calls.iter().zip(0..).all(|(call, eoi)| call.eoi == eoi));
    let shape = calls.iter().map(|call| (call.operation.0, call.ess));
    Ok((shape.collect(), without_parent))
}

/// Returns the operations of the asynchronous calls.
fn asynchronous(mut spans: Vec<Span>) -> Vec<u32> {
    spans.sort_unstable();
    let calls = calls(&spans).unwrap().0.into_iter();
    let mut marked: Vec<_> = calls
        .filter(|it| it.asynchronous)
        .map(|it| it.operation.0)
        .collect();
    marked.sort_unstable();
    marked
}

#[test]
fn spans_become_calls_in_order_of_their_starts() {
    assert_eq!(
        shape(whole()),
        Ok((vec![(1, 0), (2, 1), (3, 2), (4, 1)], 0))
    );
    let (calls, _) = calls(&whole()).unwrap();
    assert_eq!(
        (calls[2].tin, calls[2].tout, calls[2].failed),
        (20, 30, true)
    );
    assert!(!calls[1].failed);
    // Of spans with the same start, the smaller id comes first.
    let mut spans = whole();
    spans[1].start = 40;
    spans[3].id = 0x7fff;
    spans[3].operation = OperationId(4);
    assert_eq!(shape(spans).unwrap().0, [(1, 0), (2, 1), (3, 2), (4, 1)]);
}

#[test]
fn a_span_without_its_parent_is_a_root_and_counted() {
    let mut spans = whole();
    spans.remove(1);
    assert!(!are_whole(&spans));
    assert_eq!(shape(spans.clone()), Ok((vec![(1, 0), (4, 1), (3, 0)], 1)));
    spans.remove(0);
    assert_eq!(shape(spans), Ok((vec![(3, 0), (4, 0)], 2)));
    assert!(are_whole(&whole()));
    assert!(!are_whole(&[]));
    // Several spans without a parent are roots of one trace.
    let spans = vec![span(1, 0, 0, 10), span(2, 0, 5, 20)];
    assert!(are_whole(&spans) && asynchronous(spans.clone()).is_empty());
    assert_eq!(shape(spans), Ok((vec![(1, 0), (2, 0)], 0)));
}

#[test]
fn cycles_and_ids_that_repeat_are_named() {
    let mut spans = whole();
    spans[1].parent = 3;
    assert_eq!(shape(spans.clone()), Err(Reason::ParentCycle));
    spans[0].parent = 2;
    assert_eq!(shape(spans), Err(Reason::ParentCycle));
    assert_eq!(shape(vec![span(7, 7, 0, 1)]), Err(Reason::ParentCycle));
    let mut spans = whole();
    spans[3].id = 2;
    assert_eq!(shape(spans), Err(Reason::OrderRepeated));
}

#[test]
fn a_chain_of_a_million_spans_needs_no_stack() {
    let chain = (1..=1_000_000).map(|id| Span {
        operation: OperationId(0),
        ..span(id, id - 1, 0, 1)
    });
    let (calls, _) = calls(&chain.collect::<Vec<_>>()).unwrap();
    assert_eq!(calls.last().unwrap().ess, 999_999);
}

#[test]
fn calls_outside_of_their_caller_and_siblings_that_overlap_are_asynchronous() {
    assert!(asynchronous(whole()).is_empty());
    let with = |more: &[Span]| asynchronous([&whole()[..], more].concat());
    // It ends after its caller, begins before it, begins after it.
    assert_eq!(with(&[span(5, 1, 90, 101)]), [5]);
    assert_eq!(with(&[span(5, 1, -1, 0)]), [5]);
    assert_eq!(with(&[span(5, 3, 70, 80)]), [5]);
    // It overlaps 4, the one after 2 overlaps both.
    assert_eq!(with(&[span(5, 1, 59, 70)]), [4, 5]);
    assert_eq!(with(&[span(5, 1, 39, 41)]), [2, 4, 5]);
    // No two of 2, 4 and 6 overlap, but all of them overlap 5.
    assert_eq!(with(&[span(5, 1, 5, 90), span(6, 1, 80, 85)]), [2, 4, 5, 6]);
    // Calls of different callers, and siblings of which one begins when the other ends.
    assert!(with(&[span(5, 4, 45, 50), span(6, 4, 50, 60)]).is_empty());
}

/// A span of a library.
fn record(attributes: &[(&str, &str)]) -> SpanRecord {
    let attributes = attributes.iter();
    let attributes = attributes.map(|(name, value)| {
        (
            (*name).to_owned(),
            AnyValue::String((*value).to_owned().into()),
        )
    });
    SpanRecord {
        trace_id: TraceId { low: u64::MAX },
        span_id: 1,
        parent_span_id: 0,
        name: "GET /a.b (x, y)".into(),
        start_time_unix_nano: 1,
        end_time_unix_nano: u64::MAX,
        attributes: attributes.collect(),
        status: None,
        resource: Resource {
            attributes: BTreeMap::new(),
        },
        scope: Scope {
            name: "io.lib http".into(),
        },
    }
}

#[test]
fn a_signature_comes_from_the_best_attribute_and_has_no_separators() {
    let signature = |attributes: &[(&str, &str)]| record(attributes).signature();
    let function = ("code.function", "run");
    for (attributes, expected) in [
        (&[][..], "io.lib_http.GET_/a_b__x__y_()"),
        (&[function], "run()"),
        (&[function, ("code.namespace", "a.B")], "a.B.run()"),
        (&[function, ("code.function.name", "c.D.go")], "c.D.go()"),
        (
            &[
                function,
                ("kieker.signature", "async public void e.F.h(int)"),
            ],
            "public void e.F.h(int)",
        ),
    ] {
        assert_eq!(signature(attributes), expected);
    }
    let mut without_scope = record(&[]);
    without_scope.scope.name.clear();
    assert_eq!(without_scope.signature(), "GET_/a_b__x__y_()");
}

#[test]
fn host_session_and_status_are_read_and_times_that_do_not_fit_are_refused() {
    let mut record = record(&[("session.id", "s")]);
    assert_eq!((record.trace(), record.session()), (-1, Some("s")));
    assert_eq!((record.host(), record.times()), ("", None));
    let mut add = |name: &str, value: &'static str| {
        let attributes = &mut record.resource.attributes;
        attributes.insert(name.into(), AnyValue::String(value.into()));
        record.host().to_owned()
    };
    assert_eq!(add("host.name", "h"), "h");
    assert_eq!(add("service.name", "shop"), "shop");
    assert!(!record.has_failed());
    for (code, has_failed) in [(1, false), (2, true)] {
        record.status = Some(Status { code });
        assert_eq!(record.has_failed(), has_failed);
    }
}
