//! What a test program of Rust's prints.

/// How a test ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    Passed,
    Failed,
    Ignored,
}

impl Outcome {
    /// For the report.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::Ignored => "skipped",
        }
    }
}

/// The tests of a program.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Tests {
    /// Each by its name.
    pub each: Vec<(String, Outcome)>,
    /// How many it left out.
    pub filtered_out: usize,
    /// How many it said it would run; none if it did not get that far.
    announced: Option<usize>,
}

impl Tests {
    /// Reads what the program printed.
    pub fn read(text: &str) -> Self {
        let mut tests = Self::default();
        for line in text.lines() {
            tests.take(line);
        }
        tests
    }

    fn take(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("running ") {
            let number = rest.split(' ').next().and_then(|word| word.parse().ok());
            self.announced = self.announced.or(number);
        }
        if let Some(rest) = line.strip_prefix("test result: ") {
            let part = rest
                .split("; ")
                .find_map(|part| part.strip_suffix(" filtered out"));
            self.filtered_out = part.and_then(|number| number.parse().ok()).unwrap_or(0);
        } else if let Some((name, end)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.rsplit_once(" ... "))
        {
            let outcome = match end {
                "ok" => Outcome::Passed,
                end if end.starts_with("ignored") => Outcome::Ignored,
                _ => Outcome::Failed,
            };
            self.each.push((name.to_owned(), outcome));
        }
    }

    /// How many ended so.
    pub fn number(&self, outcome: Outcome) -> usize {
        self.each.iter().filter(|(_, one)| *one == outcome).count()
    }

    /// Whether every test that was announced is in it.
    pub fn complete(&self) -> bool {
        self.announced == Some(self.each.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\nrunning 3 tests\ntest a::one ... ok\ntest a::two ... ignored, not here\n\
        test b - should panic ... FAILED\n\nfailures:\n\n\
        test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.01s\n";

    #[test]
    fn every_test_and_those_left_out_are_counted() {
        let tests = Tests::read(TEXT);
        for outcome in [Outcome::Passed, Outcome::Failed, Outcome::Ignored] {
            assert_eq!(tests.number(outcome), 1, "{outcome:?}");
        }
        assert_eq!(tests.filtered_out, 4);
        assert!(tests.complete());
    }

    #[test]
    fn a_program_that_ended_early_is_not_complete() {
        assert!(!Tests::read("").complete());
        assert!(!Tests::read("running 2 tests\ntest a ... ok\n").complete());
        assert!(Tests::read("running 0 tests\n").complete());
    }
}
