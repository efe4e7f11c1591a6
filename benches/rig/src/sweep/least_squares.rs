//! Least squares of a few factors, none of which is negative.

/// The factors, none of them negative, with the least sum of squared errors; a row is its columns,
/// what they should add up to, and what its error is relative to.
///
/// There are four columns at most, so that every set of them that could be zero is tried.
pub(super) fn non_negative_least_squares(
    rows: &[(Vec<f64>, f64, f64)],
    columns: usize,
) -> Vec<f64> {
    let mut best = (f64::INFINITY, vec![0.0; columns]);
    for set in 0_u32..(1 << columns) {
        let used: Vec<usize> = (0..columns)
            .filter(|column| set & (1 << column) != 0)
            .collect();
        let Some(solved) = least_squares(rows, &used) else {
            continue;
        };
        if solved.iter().any(|factor| *factor < 0.0) {
            continue;
        }
        let mut factors = vec![0.0; columns];
        for (column, factor) in used.iter().zip(solved) {
            if let Some(place) = factors.get_mut(*column) {
                *place = factor;
            }
        }
        let error: f64 = rows
            .iter()
            .map(|(row, value, scale)| {
                let sum: f64 = row.iter().zip(&factors).map(|(x, factor)| x * factor).sum();
                ((sum - value) / scale).powi(2)
            })
            .sum();
        // Where it is the same, the columns that come first.
        if error < best.0 - 1e-12 {
            best = (error, factors);
        }
    }
    best.1
}

/// Solves the normal equations of these columns by elimination; nothing if they depend on each other.
fn least_squares(rows: &[(Vec<f64>, f64, f64)], used: &[usize]) -> Option<Vec<f64>> {
    let size = used.len();
    let column = |row: &[f64], index: usize| -> f64 {
        let column = used.get(index).and_then(|column| row.get(*column));
        column.copied().unwrap_or(0.0)
    };
    // Columns differ by many orders of magnitude: each is scaled to 1.
    let scales: Vec<f64> = (0..size)
        .map(|index| {
            let squares = rows
                .iter()
                .map(|(row, _, scale)| (column(row, index) / scale).powi(2));
            squares.sum::<f64>().sqrt()
        })
        .collect();
    if scales
        .iter()
        .any(|scale| *scale <= 0.0 || !scale.is_finite())
    {
        return None;
    }
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for (row, value, scale) in rows {
        let scaled: Vec<f64> = scales
            .iter()
            .enumerate()
            .map(|(index, by)| column(row, index) / scale / by)
            .collect();
        for (line, x) in matrix.iter_mut().zip(&scaled) {
            for (cell, y) in line.iter_mut().zip(scaled.iter().chain([&(value / scale)])) {
                *cell += x * y;
            }
        }
    }
    for pivot in 0..size {
        let line = matrix.get(pivot)?.clone();
        let head = *line.get(pivot)?;
        if head.abs() < 1e-9 {
            return None;
        }
        for (index, other) in matrix.iter_mut().enumerate() {
            if index == pivot {
                continue;
            }
            let factor = *other.get(pivot)? / head;
            for (cell, by) in other.iter_mut().zip(&line) {
                *cell -= factor * by;
            }
        }
    }
    let mut factors = Vec::with_capacity(size);
    for (index, (line, scale)) in matrix.iter().zip(&scales).enumerate() {
        factors.push(line.last()? / line.get(index)? / scale);
    }
    Some(factors)
}
