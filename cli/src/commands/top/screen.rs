//! The screen: what is drawn of a view.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};

use super::text::{per_second, total};
use super::view::{NOW, Unit, View};

/// How many rates are remembered for a line of bars.
const HISTORY: usize = 240;

/// The heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What is on the screen.
#[derive(Debug)]
pub(super) struct Screen {
    /// The last answer.
    view: Option<View>,
    /// Rates of the counters, the newest last.
    history: BTreeMap<&'static str, VecDeque<f64>>,
    /// Why there is no answer now.
    away: Option<String>,
    pub(super) paused: bool,
    pub(super) interval: Duration,
    address: String,
}

impl Screen {
    /// A screen without an answer yet.
    pub(super) fn new(address: &str, interval: Duration) -> Self {
        Self {
            view: None,
            history: BTreeMap::new(),
            away: None,
            paused: false,
            interval,
            address: address.to_owned(),
        }
    }

    /// Shows another look, or why there is none.
    pub(super) fn update(&mut self, seen: Result<View, String>) {
        match seen {
            Ok(view) => {
                for (name, rate) in &view.counters {
                    let rates = self.history.entry(name).or_default();
                    if rates.len() >= HISTORY {
                        rates.pop_front();
                    }
                    rates.push_back(rate.per_second.unwrap_or(0.0));
                }
                self.view = Some(view);
                self.away = None;
            }
            Err(error) => self.away = Some(error),
        }
    }

    /// Draws all of it.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let [head, body, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Min(0),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.head(frame, head);
        if let Some(view) = &self.view {
            self.body(frame, body, view);
        }
        let keys = format!(
            " q quit   p {}   + - every {:?}",
            if self.paused { "go on" } else { "pause" },
            self.interval
        );
        frame.render_widget(Paragraph::new(keys).dim(), foot);
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect) {
        let mut first = vec![Span::from("baler top  ").bold()];
        let mut second = Vec::new();
        if let Some(view) = &self.view {
            first.push(Span::from(format!("{} {}  ", view.command, view.version)));
            for [role, endpoint] in &view.endpoints {
                let arrow = if role == "sink" { "to " } else { "from " };
                second.push(Span::from(format!("{arrow}{endpoint}  ")));
            }
            let color = if view.is_troubled() {
                Color::Yellow
            } else {
                Color::Green
            };
            second.push(Span::from(view.connections()).fg(color));
        }
        first.push(Span::from(format!("{}  ", self.address)).dim());
        if self.paused {
            first.push(Span::from("paused").yellow().bold());
        } else if let Some(error) = &self.away {
            first.push(Span::from(format!("away: {error}")).red().bold());
        }
        let lines = vec![Line::from(first), Line::from(second)];
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn body(&self, frame: &mut Frame<'_>, area: Rect, view: &View) {
        let counters = u16::try_from(view.shown().count()).unwrap_or(u16::MAX);
        let [top, bottom] = Layout::vertical([
            Constraint::Length(counters.saturating_add(3)),
            Constraint::Min(0),
        ])
        .areas(area);
        self.counters(frame, top, view);
        let [left, middle, right] = Layout::horizontal([
            Constraint::Percentage(34),
            Constraint::Percentage(33),
            Constraint::Percentage(33),
        ])
        .areas(bottom);
        now(frame, left, view);
        lanes(frame, middle, view);
        dropped(frame, right, view);
    }

    fn counters(&self, frame: &mut Frame<'_>, area: Rect, view: &View) {
        let widths = [
            Constraint::Length(22),
            Constraint::Length(12),
            Constraint::Length(14),
            Constraint::Min(0),
        ];
        // What the other columns, their gaps and the border leave.
        let bars = usize::from(area.width).saturating_sub(22 + 12 + 14 + 5);
        let rows = view.shown().map(|(counted, rate)| {
            let history = self.history.get(counted.name);
            Row::new([
                Cell::from(counted.title),
                right(per_second(rate, counted.unit)),
                right(total(rate.total, counted.unit)),
                Cell::from(history.map_or_else(String::new, |it| sparkline(it, bars)))
                    .style(Style::new().fg(Color::Cyan)),
            ])
        });
        let header = Row::new([
            Cell::from(""),
            right("a second".to_owned()),
            right("total".to_owned()),
            Cell::from(""),
        ]);
        let table = Table::new(rows, widths)
            .header(header.style(Style::new().add_modifier(Modifier::DIM)))
            .block(Block::bordered().title("rates"));
        frame.render_widget(table, area);
    }
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

/// Bars for the newest values, as many as fit, relative to the largest of them.
fn sparkline(values: &VecDeque<f64>, width: usize) -> String {
    let shown = values.iter().skip(values.len().saturating_sub(width));
    let most = shown.clone().copied().fold(0.0, f64::max);
    shown
        .map(|value| {
            if most <= 0.0 || *value <= 0.0 {
                return ' ';
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of the largest value, from 0 to 7"
            )]
            let height = (value / most * 7.0).round() as usize;
            BARS.get(height).copied().unwrap_or('█')
        })
        .collect()
}

fn now(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let rows = NOW.iter().filter_map(|(name, title, _, unit)| {
        let value = view.now.get(name)?;
        Some(Row::new([Cell::from(*title), right(total(*value, *unit))]))
    });
    let mut rows: Vec<_> = rows.collect();
    for (trigger, chunks) in &view.closed_by {
        let title = Cell::from(format!("closed by {trigger}"));
        rows.push(Row::new([title, right(total(*chunks, Unit::Number))]));
    }
    pair_table(frame, area, "now", rows);
}

fn lanes(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let rows = view.lanes.iter().map(|lane| {
        let name = format!("{} (worker {})", lane.lane, lane.worker);
        Row::new([
            Cell::from(name),
            right(total(lane.lag_chunks, Unit::Number)),
        ])
    });
    let title = format!("lag in chunks of {} lanes", view.lanes.len());
    pair_table(frame, area, &title, rows.collect());
}

fn dropped(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let rows = view.dropped.iter().map(|(reason, rate)| {
        Row::new([
            Cell::from(reason.as_str()),
            right(total(rate.total, Unit::Number)),
        ])
        .style(Style::new().fg(Color::Red))
    });
    pair_table(frame, area, "records dropped", rows.collect());
}

fn pair_table(frame: &mut Frame<'_>, area: Rect, title: &str, rows: Vec<Row<'_>>) {
    let widths = [Constraint::Min(12), Constraint::Length(12)];
    let table = Table::new(rows, widths).block(Block::bordered().title(title.to_owned()));
    frame.render_widget(table, area);
}
