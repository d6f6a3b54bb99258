//! Line charts as SVG, small enough to be read as text.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 74.0;
/// Told apart by people who do not see all colours alike (Okabe and Ito).
const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Its values, one for each position; what was not measured is left out.
    pub values: Vec<Option<f64>>,
    /// Whether the line is broken into dashes.
    pub dashed: bool,
    /// Lines of one colour belong together.
    pub colour: usize,
}

/// A chart with a logarithmic vertical axis and evenly spaced positions.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above the chart.
    pub title: String,
    /// Below the horizontal axis.
    pub across: String,
    /// Above the vertical axis.
    pub up: String,
    /// Names of the positions.
    pub positions: Vec<String>,
    /// The lines.
    pub series: Vec<Series>,
}

impl Chart {
    /// The chart as an SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        let scale = Scale::of(&self.series);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        text(
            &mut out,
            WIDTH / 2.0,
            18.0,
            "middle",
            &format!("<tspan font-size=\"14\">{}</tspan>", escape(&self.title)),
        );
        text(&mut out, 8.0, 36.0, "start", &escape(&self.up));
        text(
            &mut out,
            WIDTH / 2.0,
            HEIGHT - BOTTOM + 34.0,
            "middle",
            &escape(&self.across),
        );
        for tick in scale.ticks() {
            let y = scale.y(tick);
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#ddd\"/>",
                WIDTH - RIGHT
            );
            text(&mut out, LEFT - 6.0, y + 4.0, "end", &number(tick));
        }
        for (index, position) in self.positions.iter().enumerate() {
            text(
                &mut out,
                self.x(index),
                HEIGHT - BOTTOM + 16.0,
                "middle",
                &escape(position),
            );
        }
        for (index, series) in self.series.iter().enumerate() {
            self.line(&mut out, &scale, series);
            self.legend(&mut out, index, series);
        }
        out.push_str("</svg>\n");
        out
    }

    fn x(&self, index: usize) -> f64 {
        let steps = small(self.positions.len().max(2) - 1);
        LEFT + 20.0 + small(index) / steps * (WIDTH - LEFT - RIGHT - 40.0)
    }

    fn line(&self, out: &mut String, scale: &Scale, series: &Series) {
        let mut path = String::new();
        let mut dots = String::new();
        for (index, value) in series.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let (x, y) = (self.x(index), scale.y(*value));
            let _ = write!(
                path,
                "{}{x:.1} {y:.1}",
                if path.is_empty() { "M" } else { "L" }
            );
            let _ = write!(
                dots,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{}\"/>",
                colour(series)
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>{dots}",
            colour(series),
            dashes(series)
        );
    }

    fn legend(&self, out: &mut String, index: usize, series: &Series) {
        let per_row = self.series.len().div_ceil(2).max(1);
        let step = (WIDTH - LEFT) / small(per_row);
        let (x, y) = (
            LEFT + step * small(index % per_row),
            HEIGHT - 26.0 + 16.0 * small(index / per_row),
        );
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {:.1}h22\" stroke=\"{}\" stroke-width=\"2\"{}/>",
            y - 4.0,
            colour(series),
            dashes(series)
        );
        text(out, x + 28.0, y, "start", &escape(&series.name));
    }
}

/// A logarithmic axis.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(series: &[Series]) -> Self {
        let values = || series.iter().flat_map(|one| &one.values).flatten().copied();
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(0.0, f64::max);
        if !low.is_finite() || low <= 0.0 {
            return Self {
                low: 1.0,
                high: 10.0,
            };
        }
        // From the tick below the smallest to the tick above the largest value.
        let ticks: Vec<f64> = all_ticks().collect();
        let below = ticks.iter().rev().find(|tick| **tick <= low);
        let above = ticks.iter().find(|tick| **tick >= high && **tick > low);
        Self {
            low: below.copied().unwrap_or(low),
            high: above.copied().unwrap_or(high),
        }
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let (low, high) = (self.low * 0.999, self.high * 1.001);
        all_ticks().filter(move |tick| *tick >= low && *tick <= high)
    }
}

fn all_ticks() -> impl Iterator<Item = f64> {
    (-3..9).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, content: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{content}</text>"
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn colour(series: &Series) -> &'static str {
    COLOURS
        .get(series.colour % COLOURS.len())
        .copied()
        .unwrap_or("black")
}

fn dashes(series: &Series) -> &'static str {
    if series.dashed {
        " stroke-dasharray=\"6 4\""
    } else {
        ""
    }
}

fn number(value: f64) -> String {
    if value >= 1e6 {
        format!("{:.0}M", value / 1e6)
    } else if value >= 1e3 {
        format!("{:.0}k", value / 1e3)
    } else {
        format!("{value}")
    }
}

/// Counts of things in a chart.
fn small(count: usize) -> f64 {
    f64::from(u16::try_from(count).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_dot_within_the_frame() {
        let chart = Chart {
            title: "a < b".into(),
            across: "there already".into(),
            up: "ms".into(),
            positions: vec!["0".into(), "10".into(), "100".into()],
            series: vec![Series {
                name: "one".into(),
                values: vec![Some(0.7), None, Some(756.0)],
                dashed: true,
                colour: 0,
            }],
        };
        let svg = chart.svg();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("a &lt; b") && svg.contains("stroke-dasharray"));
        let heights = svg
            .split("cy=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        for y in heights.map(|y| y.parse::<f64>().unwrap()) {
            assert!((TOP..=HEIGHT - BOTTOM).contains(&y), "{y}");
        }
    }
}
