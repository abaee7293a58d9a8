//! Where JSON text goes: into a string, or only into a count, each with a limit at which writing stops.

/// The limit of a sink is reached.
#[derive(Debug)]
pub(crate) struct Full;

/// Receives JSON text piece by piece.
pub(crate) trait Sink {
    /// Adds text.
    fn put(&mut self, text: &str) -> Result<(), Full>;

    /// Bytes that may still be added.
    fn room(&self) -> usize;

    /// Adds a JSON string.
    fn string(&mut self, text: &str) -> Result<(), Full> {
        // Escaping only makes it longer, so a text that does not fit need not be looked at.
        if text.len() > self.room() {
            return Err(Full);
        }
        self.put("\"")?;
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0x08 => "\\b",
                0x0c => "\\f",
                0x00..0x20 => "\\u00",
                _ => continue,
            };
            self.put(&text[plain..at])?;
            self.put(escape)?;
            if escape == "\\u00" {
                self.put(&format!("{byte:02x}"))?;
            }
            plain = at + 1;
        }
        self.put(&text[plain..])?;
        self.put("\"")
    }

    /// Adds an integer.
    fn integer(&mut self, n: impl itoa::Integer) -> Result<(), Full>
    where
        Self: Sized,
    {
        self.put(itoa::Buffer::new().format(n))
    }

    /// Adds a finite float so that it reads back as a float: `1.0`.
    fn float(&mut self, f: f64) -> Result<(), Full> {
        match serde_json::Number::from_f64(f) {
            Some(number) => self.put(&number.to_string()),
            None => self.put("null"),
        }
    }
}

/// Collects the text.
pub(crate) struct Text {
    pub(crate) text: String,
    limit: usize,
}

impl Text {
    pub(crate) fn within(limit: usize) -> Self {
        Self { text: String::new(), limit }
    }
}

impl Sink for Text {
    fn put(&mut self, text: &str) -> Result<(), Full> {
        if text.len() > self.room() {
            return Err(Full);
        }
        self.text.push_str(text);
        Ok(())
    }

    fn room(&self) -> usize {
        self.limit - self.text.len()
    }
}

/// Counts the text and keeps nothing.
pub(crate) struct Count {
    left: usize,
}

impl Count {
    pub(crate) fn within(limit: usize) -> Self {
        Self { left: limit }
    }
}

impl Sink for Count {
    fn put(&mut self, text: &str) -> Result<(), Full> {
        self.left = self.left.checked_sub(text.len()).ok_or(Full)?;
        Ok(())
    }

    fn room(&self) -> usize {
        self.left
    }
}
