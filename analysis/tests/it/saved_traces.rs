//! Saved results: they add up over several consumers, and continue after a restart.

use std::time::Duration;

use baler_analysis::Parcel;
use baler_analysis::traces::{SavedTraces, SavedTracesError, TraceAnalysis, TraceSettings};
use serde_json::Value;

use crate::support::{identity, numbered, parcel};
use crate::traces::{
    Dice, TraceRecord, analyse, document, known_traces, log, parcels, records_of,
    take_first_of_some,
};

/// Returns the saved results of an analysis of these parcels.
pub(crate) fn saved(parcels: &[Parcel], settings: &TraceSettings) -> Vec<u8> {
    let mut analysis = TraceAnalysis::new(settings.clone());
    for parcel in parcels {
        analysis.accept(parcel, |_, _| {});
    }
    save(&analysis)
}

fn save(analysis: &TraceAnalysis) -> Vec<u8> {
    let mut bytes = Vec::new();
    analysis.save(&mut bytes).unwrap();
    bytes
}

pub(crate) fn loaded(bytes: &[u8]) -> SavedTraces {
    SavedTraces::read(bytes).unwrap()
}

/// Returns an analysis with the results of these files.
pub(crate) fn merged(files: &[Vec<u8>], settings: &TraceSettings) -> TraceAnalysis {
    let mut analysis = TraceAnalysis::new(settings.clone());
    analysis.add_saved(files.iter().map(|bytes| loaded(bytes)).collect());
    analysis
}

/// Returns all results, in an order that does not depend on the order of arrival.
pub(crate) fn found(mut analysis: TraceAnalysis) -> (Value, Vec<String>) {
    analysis.finish(|_, _| {});
    let folded = analysis.folded();
    let mut folded: Vec<_> = folded.lines().map(str::to_owned).collect();
    folded.sort();
    (document(&analysis), folded)
}

fn whole(parcels: &[Parcel], settings: &TraceSettings) -> (Value, Vec<String>) {
    found(analyse(parcels, settings.clone()).0)
}

#[test]
fn parts_add_up_to_the_whole_also_where_each_has_a_part_of_a_trace() {
    let settings = TraceSettings::default();
    for folder in [
        "operation-executions-2010",
        "oracle/oer-1000-bad/kieker-20261123-120000-1-UTC--KIEKER",
    ] {
        // At random: the chunks of three consumers have calls of the same traces.
        let parcels = log(folder, Some(5));
        let parts = [0, 1, 2].map(|part| {
            let own = parcels.iter().skip(part).step_by(3);
            saved(&own.cloned().collect::<Vec<_>>(), &settings)
        });
        assert_eq!(
            found(merged(&parts, &settings)),
            whole(&parcels, &settings),
            "{folder}"
        );
    }
}

/// The traces of each lane, most of which are closed before their results are saved.
#[test]
fn closed_traces_and_their_callers_add_up_in_any_order_of_files() {
    let traces = known_traces(6_000, &mut Dice(99));
    // A trace begins each microsecond.
    let mut settings = TraceSettings::default();
    settings.max_duration = Duration::from_millis(1);
    let records = records_of(&traces);
    let all = whole(&parcels(&records), &settings);
    let of = |record: &TraceRecord| match record {
        TraceRecord::Call(call) => call.trace_id % 3,
        TraceRecord::Parent(parent) => parent.trace_id % 3,
    };
    let mut lanes: [Vec<TraceRecord>; 3] = [vec![], vec![], vec![]];
    for record in records {
        lanes[usize::try_from(of(&record)).unwrap()].push(record);
    }
    let mut files = lanes.map(|lane| {
        let part = saved(&parcels(&lane), &settings);
        let open: Value = serde_json::from_slice(&part).unwrap();
        assert!(open["open"].as_array().unwrap().len() < 1_500);
        part
    });
    for _ in 0..3 {
        files.rotate_left(1);
        let (mut document, folded) = found(merged(&files, &settings));
        // The chunks of the three lanes have the same numbers here.
        document["traces"]["shared_chunks"] = 0.into();
        assert_eq!((document, folded), all);
    }
}

#[test]
fn an_analysis_goes_on_with_what_it_saved_and_takes_no_chunk_twice() {
    let mut settings = TraceSettings::default();
    settings.chunks_once = true;
    let events = "oracle/events-500/kieker-20261123-120000-1-UTC--KIEKER";
    let logs = [log("operation-executions-2010", Some(3)), log(events, None)];
    for parcels in logs {
        let expected = whole(&parcels, &settings);
        let half = parcels.len() / 2;
        let mut analysis = TraceAnalysis::new(settings.clone());
        let mut copies = 0;
        for (number, parcel) in parcels.iter().enumerate() {
            // It is killed three times, and gets the last two chunks again.
            if number % half.div_ceil(2).max(1) == 2 {
                analysis = merged(&[save(&analysis)], &settings);
                for again in &parcels[number - 2..number] {
                    analysis.accept(again, |_, _| {});
                    copies += 1;
                }
            }
            analysis.accept(parcel, |_, _| {});
        }
        assert!(copies >= 2);
        let (mut document, folded) = found(analysis);
        assert_eq!(document["traces"]["chunk_copies"], copies);
        document["traces"]["chunk_copies"] = 0.into();
        assert_eq!((document, folded), expected);
    }
}

#[test]
fn chunks_that_two_parts_have_are_counted_and_copies_of_open_traces_are_dropped() {
    let mut settings = TraceSettings::default();
    settings.chunks_once = true;
    let parcels = log("operation-executions-2010", None);
    let parts = [&parcels[..6], &parcels[4..]].map(|part| saved(part, &settings));
    let (document, _) = found(merged(&parts, &settings));
    assert_eq!(document["traces"]["shared_chunks"], 2);
    assert_eq!(document["traces"]["copies"], 1_400);
    assert_eq!(document["traces"]["valid"], 1_635);
    assert_eq!(
        document["dependencies"],
        whole(&parcels, &settings).0["dependencies"]
    );
}

#[test]
fn a_late_record_is_late_after_a_restart_too() {
    let mut settings = TraceSettings::default();
    settings.max_waiting = 200;
    let mut records = records_of(&known_traces(5_000, &mut Dice(77)));
    records.retain(|record| matches!(record, TraceRecord::Call(_)));
    let missing = take_first_of_some(&mut records);
    let mut analysis = merged(&[saved(&parcels(&records), &settings)], &settings);
    analysis.accept(&parcels(&[missing])[0], |_, _| {});
    let (document, _) = found(analysis);
    assert_eq!(document["traces"]["late_records"], 1);
    assert_eq!(document["traces"]["records"], records.len() + 1);
}

/// Replaces the first number after this text.
fn with_number(text: &str, after: &str, number: &str) -> String {
    let (before, rest) = text.split_once(after).unwrap();
    let behind = rest.trim_start_matches(|it: char| it.is_ascii_digit());
    assert!(behind.len() < rest.len(), "no number after {after}");
    format!("{before}{after}{number}{behind}")
}

#[test]
fn a_file_that_is_damaged_is_refused() {
    let traces = known_traces(40, &mut Dice(3));
    let mut settings = TraceSettings::default();
    settings.max_duration = Duration::from_micros(10);
    let good = saved(&parcels(&records_of(&traces)), &settings);
    for end in (0..good.len()).step_by(97) {
        let error = SavedTraces::read(&good[..end]).unwrap_err();
        assert!(matches!(error, SavedTracesError::Json(_)), "{error}");
    }
    let text = String::from_utf8(good).unwrap();
    let error = |text: &str| SavedTraces::read(text.as_bytes()).unwrap_err().to_string();
    let other = text.replace("baler-traces/1", "baler-traces/2");
    assert_eq!(
        error(&other),
        "its format is `baler-traces/2`, not `baler-traces/1`"
    );
    assert!(error(&text.replace("\"span\"", "\"spam\"")).contains("spam"));
    for (after, named) in [
        ("\"tree\":[[", "a node names operation 99999"),
        ("\"kind\":", "a list of times names kind 99999"),
        ("\"nodes\":[", "a trace names node 99999"),
    ] {
        let message = error(&with_number(&text, after, "99999"));
        assert!(message.starts_with(named), "{message}");
    }
    // A node cannot be below itself.
    let (before, tree) = text.split_once("\"tree\":[[").unwrap();
    let (operation, _) = tree.split_once(',').unwrap();
    let first = format!("{before}\"tree\":[[{operation},");
    let below = with_number(&text, &first, "1");
    assert!(error(&below).starts_with("a node names node 1,"));
    // The calls of an example must be a tree.
    let (before, example) = text.split_once("\"example\":{").unwrap();
    let (id, calls) = example.split_once("\"calls\":[[0,0,").unwrap();
    let deep = format!("{before}\"example\":{{{id}\"calls\":[[0,-1,{calls}");
    assert!(error(&deep).contains("is not valid"), "{}", error(&deep));
}

#[test]
fn a_range_of_chunks_that_is_none_is_refused() {
    let mut settings = TraceSettings::default();
    settings.chunks_once = true;
    let text = String::from_utf8(saved(&[parcel(&[numbered(1)])], &settings)).unwrap();
    let range = format!("[\"{}\",0]", identity(0));
    assert!(text.contains(&range), "{text}");
    for wrong in ["[\"7/1-2/0\",0]", &format!("[\"{}\",0]", identity(1))] {
        let error = SavedTraces::read(text.replace(&range, wrong).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("no range of chunks"), "{error}");
    }
}
