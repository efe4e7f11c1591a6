//! Pages of kept sweeps, and of cells that are rare in sweeps.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use serde_json::Value;

use super::super::case::Case;
use super::super::cell::tests::{case, runs};
use super::super::cell::{
    BEYOND_LOAD, BEYOND_LOAD_BY_PIPELINED, BROKER_CPU, BYTES_BY_PIPELINED, CPU_BY_AWAITING,
    CPU_BY_PIPELINED, LATENCY_P50, MESSAGES, READER_CPU, cells as cells_of,
};
use super::super::load::Material;
use super::super::recommend::{Bounds, recommend};
use super::super::report::text;
use super::*;
use crate::statistics::Interval;

const CALLS: Material<'_> = Material::of_seed(1);

/// A kept sweep.
fn document(name: &str) -> Value {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/2core-intel");
    let text = fs::read_to_string(results.join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn cells_in(document: &Value) -> Vec<Cell> {
    let of = |name: &str| document[name].as_array().unwrap().iter();
    of("controls").chain(of("cells")).map(cell).collect()
}

fn cell(kept: &Value) -> Cell {
    let figure = |name| {
        let part = |part: &str| kept[name][part].as_f64();
        let interval = part("mean").zip(part("low")).zip(part("high"));
        let interval = interval.map(|((mean, low), high)| Interval { mean, low, high });
        // Ratios had no interval then.
        let number = kept[name].as_f64().map(|mean| Interval {
            mean,
            low: mean,
            high: mean,
        });
        let interval = interval.or(number);
        (name, interval)
    };
    let figures = [
        WRITER_CPU,
        READER_CPU,
        BROKER_CPU,
        WIRE_BYTES,
        MESSAGES,
        LATENCY_P50,
        LATENCY_P99,
        BEYOND_LOAD,
        BEYOND_LOAD_BY_PIPELINED,
        CPU_BY_PIPELINED,
        CPU_BY_AWAITING,
        BYTES_BY_PIPELINED,
    ];
    Cell {
        case: serde_json::from_value::<Case>(kept.clone()).unwrap(),
        repetitions: usize::try_from(kept["repetitions"].as_u64().unwrap()).unwrap(),
        seconds: kept["seconds"].as_f64().unwrap(),
        figures: BTreeMap::from(figures.map(figure)),
        offered_rate: kept["offered_rate"].as_f64(),
        achieved_rate: kept["achieved_rate"].as_f64(),
        saturated: kept["saturated"].as_bool().unwrap(),
        lost: kept["lost"].as_u64().unwrap(),
        failure: None,
    }
}

/// Makes the page of a kept sweep with these cells, and writes it to the folder in `BALER_PAGES`.
fn page_of(name: &str, document: &Value, cells: &[Cell]) -> String {
    let models: Vec<CostModel> = CostModel::fit(cells, "none", CALLS)
        .unwrap()
        .into_iter()
        .collect();
    let recommended = recommend(cells, &models, Bounds::default(), CALLS).unwrap();
    let provenance: Provenance = serde_json::from_value(document.clone()).unwrap();
    let to = document["to"].as_str().unwrap();
    let page = page(to, None, cells, &models, &recommended, &provenance).unwrap();
    if let Some(folder) = env::var_os("BALER_PAGES") {
        let path = Path::new(&folder).join(name).with_extension("html");
        fs::write(path, &page).unwrap();
    }
    page
}

fn find(cells: &mut [Cell], size: u32) -> &mut Cell {
    let mut all = cells.iter_mut();
    all.find(|cell| cell.case.chunk_records == Some(size))
        .unwrap()
}

#[test]
fn the_page_begins_with_the_recommendation_and_explains_its_tables_and_loads_nothing() {
    let document = document("sweep-kafka.json");
    let page = page_of("kafka", &document, &cells_in(&document));
    let (before, after) = page.split_once("class=\"lead\">").unwrap();
    assert!(!before.contains("<table") && after.contains("<table"));
    for said in [
        "set chunk_records = 1024, wait_time = 500 ms and compression none",
        "56 % less CPU time than with the client library alone",
        "within 126 ms instead of 8.24 ms",
        "measured 12 times",
        " % off in CPU time at sizes that were left out of its fit",
        "awaiting, was saturated: it confirmed 3.05k of 10.0k records/s",
    ] {
        assert!(after.contains(said), "{said}");
    }
    assert_eq!(page.matches("<svg").count(), 3);
    assert_eq!(page.matches("<polygon").count(), 3);
    assert!(!page.contains("<pre") && !page.contains("#FFFFFF"));
    for heading in page.split("<th scope=\"col\">").skip(1) {
        let (heading, _) = heading.split_once('<').unwrap();
        assert!(page.contains(&format!("<dt>{heading}</dt>")), "{heading}");
    }
    for outside in ["src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The namespace of SVG is a name, not an address.
    let rest = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!rest.contains("http"), "{rest}");
    let document = self::document("sweep-amqp.json");
    let page = page_of("amqp", &document, &cells_in(&document));
    assert!(page.contains("&amp;queue_type=classic"));
}

#[test]
fn the_tables_are_the_ones_that_were_read() {
    let document = document("sweep-kafka.json");
    let cells = cells_in(&document);
    let models = CostModel::fit(&cells, "none", CALLS).unwrap();
    let models: Vec<CostModel> = models.into_iter().collect();
    let recommended = recommend(&cells, &models, Bounds::default(), CALLS).unwrap();
    let text = text(None, &cells, &models, Some(&recommended));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cli/tests/golden/sweep.txt");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(path).unwrap());
}

#[test]
fn a_baseline_that_did_not_keep_up_is_named_and_the_smallest_chunks_stand_for_it() {
    let document = document("sweep-kafka.json");
    let mut cells = cells_in(&document);
    for cell in &mut cells {
        cell.saturated |= cell.case.way == Way::Pipelined;
    }
    let page = page_of("saturated", &document, &cells);
    for said in [
        "pipelined, was saturated",
        "77 % less CPU time than with chunk_records = 1 ",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn a_recommendation_that_is_not_better_beyond_its_interval_says_so() {
    let document = document("sweep-kafka.json");
    let mut cells = cells_in(&document);
    let wide = |it: &mut Cell| {
        let cpu = it.figure(WRITER_CPU).unwrap();
        let (low, high) = (cpu.mean - 0.03, cpu.mean + 0.03);
        it.figures
            .insert(WRITER_CPU, Some(Interval { low, high, ..cpu }));
    };
    wide(find(&mut cells, 1_024));
    let page = page_of("equal", &document, &cells);
    for said in [
        "do not expect a gain",
        "overlaps that of chunk_records = 16, 32, 128:",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn a_recommendation_that_was_not_measured_says_so_and_names_the_error_of_the_model() {
    let document = document("sweep-kafka.json");
    let mut cells = cells_in(&document);
    cells.retain(|cell| cell.case.chunk_records != Some(128));
    let model = CostModel::fit(&cells, "none", CALLS).unwrap().unwrap();
    let mut one = recommend(
        &cells,
        std::slice::from_ref(&model),
        Bounds::default(),
        CALLS,
    )
    .unwrap()
    .remove(0);
    one.expected.chunk_records = 512;
    let said = advice(&one, &cells, &[model]);
    assert!(said[1].contains("not measured"), "{said:?}");
    assert!(said[2].contains("The model was at most"), "{said:?}");
}

#[test]
fn cells_without_figures_have_no_chart_and_the_page_is_still_there() {
    let mut cells = cells_of(&[case(Way::Baler, Some(8))], &[runs(&[])]);
    cells[0].failure = Some("a < b".to_owned());
    let page = page_of("empty", &document("sweep-tcp.json"), &cells);
    assert!(!page.contains("<svg") && page.contains("<h1>") && page.contains("8: a &lt; b"));
    assert!(page.contains(NONE));
}
