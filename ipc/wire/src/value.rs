//! `$`-tagged values: builders for what the kernel itself says, and the plain form for readers that want plain JSON.

use serde_json::{Map, Value, json};

/// `{"$":"null"}`.
pub fn null() -> Value {
    json!({ "$": "null" })
}

/// A tagged string.
pub fn str(text: impl Into<String>) -> Value {
    json!({ "$": "str", "v": text.into() })
}

/// A tagged string, or tagged null.
pub fn str_or_null(text: Option<&str>) -> Value {
    text.map_or_else(null, str)
}

/// A tagged integer.
pub fn int(number: i64) -> Value {
    json!({ "$": "int", "v": number })
}

/// A tagged boolean.
pub fn bool(flag: bool) -> Value {
    json!({ "$": "bool", "v": flag })
}

/// A tagged list.
pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
    json!({ "$": "list", "v": items.into_iter().collect::<Vec<_>>() })
}

/// A tagged record; members keep their order.
pub fn record<'n>(members: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let members: Map<String, Value> = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    json!({ "$": "record", "v": members })
}

/// Tags plain JSON: objects become records, arrays lists.
pub fn tagged(plain: &Value) -> Value {
    match plain {
        Value::Null => null(),
        Value::Bool(flag) => bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(number) => int(number),
            None => json!({ "$": "float", "v": number }),
        },
        Value::String(text) => str(text.as_str()),
        Value::Array(items) => list(items.iter().map(tagged)),
        Value::Object(members) => record(members.iter().map(|(name, value)| (name.as_str(), tagged(value)))),
    }
}

/// The tag of a value, when it has one.
pub fn tag(value: &Value) -> Option<&str> {
    value.get("$")?.as_str()
}

/// The plain form of a tagged value. What is not tagged stays as it is.
pub fn plain(value: &Value) -> Value {
    let Some(tag) = tag(value) else { return value.clone() };
    let v = || value.get("v").cloned().unwrap_or(Value::Null);
    let member = |name: &str| value.get(name).cloned().unwrap_or(Value::Null);
    match tag {
        "null" => Value::Null,
        "bool" | "int" | "float" | "str" | "size" | "duration" | "bytes" | "path" | "datetime" | "time" => v(),
        "glob" => member("pattern"),
        "regex" => member("src"),
        "range" => json!({ "start": member("start"), "end": member("end"), "inclusive": member("inclusive") }),
        "list" => {
            value.get("v").and_then(Value::as_array).map_or(Value::Null, |items| items.iter().map(plain).collect())
        }
        "record" => match value.get("v") {
            Some(Value::Object(members)) => {
                Value::Object(members.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
            }
            _ => Value::Null,
        },
        "table" => Value::Array(rows(value)),
        "outcome" => json!({ "status": member("status"), "ok": member("ok"), "signal": member("signal"),
            "out": value.get("out").map_or(Value::Null, plain), "err": member("err") }),
        "error" => json!({ "code": member("code"), "msg": member("msg") }),
        "secret" => json!(format!("secret({})", member("name").as_str().unwrap_or_default())),
        "ref" => json!({ "uri": member("uri"), "of": member("of"), "n": member("n") }),
        "task" => json!(format!("task {}", member("id"))),
        "stream" => member("label"),
        _ => match value.get("repr") {
            Some(repr) => repr.clone(),
            None => value.clone(),
        },
    }
}

/// The rows of a table as plain objects.
fn rows(table: &Value) -> Vec<Value> {
    let Some(columns) = table.get("cols").and_then(Value::as_object) else { return Vec::new() };
    let count = table.get("n").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let longest = columns.values().filter_map(Value::as_array).map(Vec::len).max().unwrap_or(0);
    // A count without cells behind it is a peer's mistake, not a reason to allocate.
    (0..count.min(longest))
        .map(|at| {
            let cell = |cells: &Value| cells.get(at).map_or(Value::Null, plain);
            Value::Object(columns.iter().map(|(name, cells)| (name.clone(), cell(cells))).collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_forms() {
        let table = json!({"$":"table","cols":{"a":[int(1),int(2)],"b":[str("x"),{"$":"null"}]},"n":2});
        let cases = [
            (null(), json!(null)),
            (record([("a", list([int(1), bool(true)]))]), json!({"a": [1, true]})),
            (table, json!([{"a": 1, "b": "x"}, {"a": 2, "b": null}])),
            (json!({"$":"range","start":1,"end":3,"inclusive":false}), json!({"start":1,"end":3,"inclusive":false})),
            (json!({"$":"float","v":"NaN"}), json!("NaN")),
            (json!({"$":"secret","name":"K"}), json!("secret(K)")),
            (json!({"$":"error","code":"c","msg":"m","hint":"h"}), json!({"code":"c","msg":"m"})),
            (
                json!({"$":"outcome","status":1,"ok":false,"signal":null,"out":str("o"),"err":"e","dur_ns":1,"pid":2,"cmd":"c"}),
                json!({"status":1,"ok":false,"signal":null,"out":"o","err":"e"}),
            ),
            (json!({"$":"ref","uri":"u","of":"list","n":9,"preview":null}), json!({"uri":"u","of":"list","n":9})),
            (json!({"a": 1}), json!({"a": 1})),
            (json!({"$":"closure","repr":"f"}), json!("f")),
            (json!({"$":"new_tag","z":1}), json!({"$":"new_tag","z":1})),
        ];
        for (tagged, expected) in cases {
            assert_eq!(plain(&tagged), expected);
        }
    }

    #[test]
    fn tagging_and_plain_form_are_inverse_for_json() {
        let value = json!({"a": [1, "x", null, true, 1.5], "b": {"c": []}});
        assert_eq!(plain(&tagged(&value)), value);
    }
}
