//! The positions of a graph's nodes: in layers from left to right (Sugiyama, Tagawa, Toda, 1981).
//!
//! cycles are cut -> layers by the longest path from a start -> order by the mean of the neighbours

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::graph::{Graph, GraphNode, escaped};

/// The height of a node and the space between two, in pixels.
const NODE_HEIGHT: f64 = 40.0;
const GAP: f64 = 24.0;

/// The width of a letter, and the space between two layers, in pixels.
const LETTER: f64 = 7.2;
const LAYER_GAP: f64 = 90.0;

/// The most letters of a drawn name.
const MAX_LETTERS: usize = 44;

/// The number of passes that order the layers.
const SWEEPS: usize = 8;

/// The position of one node.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Placement {
    /// The upper left corner.
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
}

impl Placement {
    pub(super) const HEIGHT: f64 = NODE_HEIGHT;
}

/// The layout of a graph.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    pub(super) nodes: Vec<Placement>,
    /// The edges, in order.
    pub(super) curves: Vec<Curve>,
    /// The middles of the edges' labels.
    pub(super) labels: Vec<(f64, f64)>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A line with a bend: a cubic Bezier curve by its four points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve([(f64, f64); 4]);

impl Curve {
    /// Goes around nodes between the two: above them from left to right, and below them back.
    fn between(from: Placement, to: Placement) -> Self {
        let half = NODE_HEIGHT / 2.0;
        let gap = to.x - from.x - from.width;
        if gap > 0.0 {
            let lift = (gap - 1.5 * LAYER_GAP).max(0.0) * 0.3;
            let (x1, y1) = (from.x + from.width, from.y + half);
            let (x2, y2) = (to.x, to.y + half);
            let bend = (gap / 2.0).min(120.0);
            return Self([
                (x1, y1),
                (x1 + bend, y1 - lift),
                (x2 - bend, y2 - lift),
                (x2, y2),
            ]);
        }
        let (x1, y1) = (from.x + from.width * 0.6, from.y + NODE_HEIGHT);
        let (x2, y2) = (to.x + to.width * 0.4, to.y + NODE_HEIGHT);
        let dip = 50.0 + (x1 - x2).abs() * 0.25;
        let bottom = y1.max(y2) + dip;
        Self([(x1, y1), (x1, bottom), (x2, bottom), (x2, y2)])
    }

    /// Returns it in SVG's syntax.
    pub(super) fn path(&self) -> String {
        let [(x1, y1), (x2, y2), (x3, y3), (x4, y4)] = self.0;
        format!("M{x1:.0} {y1:.0}C{x2:.0} {y2:.0} {x3:.0} {y3:.0} {x4:.0} {y4:.0}")
    }

    /// Returns the point after this part of it, from 0 to 1.
    fn point(&self, part: f64) -> (f64, f64) {
        let [a, b, c, d] = self.0;
        let (t, rest) = (part, 1.0 - part);
        let mix = |a: f64, b: f64, c: f64, d: f64| {
            a * rest.powi(3) + 3.0 * t * rest * (b * rest + c * t) + d * t.powi(3)
        };
        (mix(a.0, b.0, c.0, d.0), mix(a.1, b.1, c.1, d.1))
    }
}

/// Finds a position for every node and edge.
pub(super) fn place(graph: &Graph) -> Layout {
    let layers = layers(graph);
    let layer_count = layers.iter().max().map_or(0, |last| last + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layer_count];
    for (node, layer) in layers.iter().enumerate() {
        rows[*layer].push(node);
    }
    let mut heights = vec![0.0; graph.nodes.len()];
    for row in &rows {
        spread(row, &mut heights);
    }
    for sweep in 0..SWEEPS {
        // From left to right by callers, and back by the called nodes.
        let is_forward = sweep % 2 == 0;
        let mut sums = vec![(0.0, 0.0); graph.nodes.len()];
        let mut order: Vec<usize> = (0..rows.len()).collect();
        if !is_forward {
            order.reverse();
        }
        for layer in order {
            for edge in &graph.edges {
                let (node, neighbour) = match is_forward {
                    true => (edge.to, edge.from),
                    false => (edge.from, edge.to),
                };
                if layers[node] == layer && layers[neighbour] != layer {
                    let (sum, count) = sums[node];
                    sums[node] = (sum + heights[neighbour], count + 1.0);
                }
            }
            let mean = |node: usize| match sums[node] {
                (sum, count) if count > 0.0 => sum / count,
                _ => heights[node],
            };
            let row = &mut rows[layer];
            row.sort_by(|a, b| mean(*a).total_cmp(&mean(*b)));
            spread(row, &mut heights);
        }
    }
    finish(graph, &rows, &heights)
}

/// Places the nodes of a layer below each other, around a common middle.
fn spread(row: &[usize], heights: &mut [f64]) {
    let mut y = -(count(row.len()) - 1.0) / 2.0;
    for node in row {
        heights[*node] = y;
        y += 1.0;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a picture has few nodes")]
fn count(number: usize) -> f64 {
    number as f64
}

/// Converts rows and heights to pixels.
fn finish(graph: &Graph, rows: &[Vec<usize>], heights: &[f64]) -> Layout {
    let mut placements = vec![Placement::default(); graph.nodes.len()];
    let top = heights.iter().copied().fold(0.0, f64::min);
    let bottom = heights.iter().copied().fold(0.0, f64::max);
    let mut x = GAP;
    for row in rows {
        let mut widest = 0.0_f64;
        for node in row {
            let width = width(&graph.nodes[*node]);
            widest = widest.max(width);
            placements[*node] = Placement {
                x,
                y: (heights[*node] - top) * (NODE_HEIGHT + GAP) + GAP,
                width,
            };
        }
        x += widest + LAYER_GAP;
    }
    let mut layout = Layout {
        curves: curves(graph, &placements),
        labels: Vec::new(),
        nodes: placements,
        width: x - LAYER_GAP + GAP,
        height: (bottom - top + 1.0) * (NODE_HEIGHT + GAP) + GAP,
    };
    // Make space for the curves above and below the nodes.
    let highest = layout.curves.iter().map(|curve| curve.point(0.5).1);
    let shift = GAP - highest.fold(GAP, f64::min);
    layout.nodes.iter_mut().for_each(|node| node.y += shift);
    layout.curves = curves(graph, &layout.nodes);
    let lowest = layout.curves.iter().map(|curve| curve.point(0.5).1 + GAP);
    layout.height = lowest.fold(layout.height + shift, f64::max);
    layout.labels = labels(graph, &layout.curves);
    layout
}

/// The width and the height of the space for a label.
const LABEL: (f64, f64) = (52.0, 17.0);

/// How many labels before it a label is compared with; large graphs cannot be read anyway.
const MAX_COMPARED: usize = 500;

/// Places a label near the end of its edge where fewer edges meet, or where no other label lies.
fn labels(graph: &Graph, curves: &[Curve]) -> Vec<(f64, f64)> {
    let mut ends = vec![(0_usize, 0_usize); graph.nodes.len()];
    for edge in &graph.edges {
        ends[edge.from].0 += 1;
        ends[edge.to].1 += 1;
    }
    let mut placed: Vec<(f64, f64)> = Vec::new();
    for (edge, curve) in graph.edges.iter().zip(curves) {
        let part = match ends[edge.from].0.cmp(&ends[edge.to].1) {
            Ordering::Less => 0.35,
            Ordering::Equal => 0.5,
            Ordering::Greater => 0.65,
        };
        let places = [part, 0.5, 0.35, 0.65, 0.2, 0.8].map(|part| curve.point(part));
        let is_free = |(x, y): &&(f64, f64)| {
            let mut others = placed.iter().rev().take(MAX_COMPARED);
            others.all(|other| (*x - other.0).abs() > LABEL.0 || (*y - other.1).abs() > LABEL.1)
        };
        let place = places.iter().find(is_free).copied();
        placed.push(place.unwrap_or(places[0]));
    }
    placed
}

fn curves(graph: &Graph, nodes: &[Placement]) -> Vec<Curve> {
    let edges = graph.edges.iter();
    edges
        .map(|edge| Curve::between(nodes[edge.from], nodes[edge.to]))
        .collect()
}

fn width(node: &GraphNode) -> f64 {
    let letters = |text: &str| text.chars().count().min(MAX_LETTERS);
    let longest = letters(&node.label).max(letters(&node.groups.join(" · ")));
    count(longest) * LETTER + 20.0
}

/// Returns the layer of each node: the longest path to it, without the edges that close a cycle.
fn layers(graph: &Graph) -> Vec<usize> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        out[edge.from].push(edge.to);
    }
    // Nodes in the order in which a depth-first search leaves them; edges to open nodes close
    // cycles.
    let mut is_entered = vec![false; graph.nodes.len()];
    let mut left = Vec::with_capacity(graph.nodes.len());
    for start in 0..graph.nodes.len() {
        if is_entered[start] {
            continue;
        }
        is_entered[start] = true;
        let mut stack = vec![(start, out[start].iter())];
        while let Some((node, next)) = stack.last_mut() {
            match next.next() {
                Some(to) if !is_entered[*to] => {
                    is_entered[*to] = true;
                    stack.push((*to, out[*to].iter()));
                }
                Some(_) => {}
                None => {
                    left.push(*node);
                    stack.pop();
                }
            }
        }
    }
    left.reverse();
    let mut rank = vec![0_usize; graph.nodes.len()];
    for (position, node) in left.iter().enumerate() {
        rank[*node] = position;
    }
    let mut layers = vec![0_usize; graph.nodes.len()];
    for node in left {
        for to in &out[node] {
            if rank[*to] > rank[node] {
                layers[*to] = layers[*to].max(layers[node] + 1);
            }
        }
    }
    layers
}

impl Graph {
    /// The graph as a picture.
    pub fn svg(&self) -> String {
        let layout = place(self);
        let (width, height) = (layout.width, layout.height);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
             markerHeight=\"8\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\" fill=\"#567\"/>\
             </marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let edges = self.edges.iter().zip(&layout.curves);
        for ((edge, curve), (x, y)) in edges.zip(&layout.labels) {
            let path = curve.path();
            writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"#567\" marker-end=\"url(#arrow)\"/>\
                 <text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#345\" stroke=\"white\" \
                 stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                y - 4.0,
                edge.calls
            )
            .ok();
        }
        for (node, placement) in self.nodes.iter().zip(&layout.nodes) {
            let Placement { x, y, width } = *placement;
            let middle = x + width / 2.0;
            let (group, label) = (shortened(&node.groups.join(" · ")), shortened(&node.label));
            let lines = match group.is_empty() {
                true => format!("<tspan x=\"{middle:.0}\" dy=\"24\">{label}</tspan>"),
                false => format!(
                    "<tspan x=\"{middle:.0}\" dy=\"16\" fill=\"#678\">{group}</tspan>\
                     <tspan x=\"{middle:.0}\" dy=\"16\">{label}</tspan>"
                ),
            };
            writeln!(
                svg,
                "<g><title>{}</title><rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" \
                 height=\"{NODE_HEIGHT:.0}\" rx=\"6\" fill=\"#eef3f8\" stroke=\"#789\"/><text y=\"{y:.0}\" \
                 text-anchor=\"middle\">{lines}</text></g>",
                escaped(&node.full_name()),
            )
            .ok();
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// The end of a long name has more information than its beginning.
fn shortened(text: &str) -> String {
    let letters = text.chars().count();
    if letters <= MAX_LETTERS {
        return escaped(text);
    }
    let end: String = text.chars().skip(letters - (MAX_LETTERS - 1)).collect();
    format!("…{}", escaped(&end))
}
