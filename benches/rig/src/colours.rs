//! The colours of lines in charts.

use plotters::style::RGBColor;

/// Told apart by those who do not see all colours, too (Okabe and Ito, "Color universal design"), and
/// three more for many lines; the first one is for what a chart is about.
pub const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
    RGBColor(140, 140, 140),
    RGBColor(160, 120, 60),
];
