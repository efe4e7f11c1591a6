//! The live view: the figures as text, drawn again after each scrape.

use std::collections::{BTreeMap, VecDeque};

use super::view::View;

/// The number of rates in a line of bars.
const HISTORY: usize = 20;

/// The heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The state of the screen.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// The view of the last answer.
    view: Option<View>,
    /// Rates of the counters, as far as they are known, the newest last.
    history: BTreeMap<&'static str, VecDeque<Option<f64>>>,
    /// The error, while the process does not answer.
    away: Option<String>,
}

impl Screen {
    /// Updates the screen with a new view, or with the error.
    pub(super) fn update(&mut self, seen: Result<View, String>) {
        match seen {
            Ok(view) => {
                for (name, rate) in &view.counters {
                    let rates = self.history.entry(name).or_default();
                    if rates.len() >= HISTORY {
                        rates.pop_front();
                    }
                    rates.push_back(rate.per_second);
                }
                self.view = Some(view);
                self.away = None;
            }
            Err(error) => self.away = Some(error),
        }
    }

    /// Returns the text of the screen.
    pub(super) fn text(&self) -> String {
        let bars = |name: &str| self.history.get(name).map_or_else(String::new, sparkline);
        let mut text = self
            .view
            .as_ref()
            .map_or_else(String::new, |view| view.text(bars));
        if let Some(error) = &self.away {
            text.push_str(&format!("\naway: {error}\n"));
        }
        text
    }
}

/// Returns a bar for each value, relative to the largest value.
fn sparkline(values: &VecDeque<Option<f64>>) -> String {
    let max = values.iter().copied().flatten().fold(0.0, f64::max);
    let bars = values.iter().map(|value| {
        let Some(value) = value.filter(|value| *value > 0.0) else {
            return ' ';
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of the largest value, from 0 to 7"
        )]
        let height = (value / max * 7.0).round() as usize;
        BARS[height]
    });
    bars.collect()
}
