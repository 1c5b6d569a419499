//! The source's types: their SQL names for DDL, and which target types hold their values without loss.

use postgres_types::{Kind, Type};
use trellara_storage::records::ColumnRecord;

use super::table::TargetColumn;
use crate::postgres::ident::{Qualified, identifier};

/// A type as the source named it. A domain is named by its base type (pgoutput does).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceType {
    /// Empty for built-in ones.
    schema: String,
    /// Of the element, for arrays.
    name: String,
    array: bool,
    modifier: i32,
}

impl SourceType {
    /// None for a type that the stream did not describe.
    pub(super) fn of(column: &ColumnRecord) -> Option<Self> {
        let (schema, name) = match (&column.type_name, Type::from_oid(column.type_oid)) {
            (Some((schema, name)), _) => (schema.as_str(), name.clone()),
            (None, Some(built_in)) => return Some(Self::built_in(&built_in, column.type_modifier)),
            (None, None) => return None,
        };
        let schema = if schema == "pg_catalog" { "" } else { schema };
        let element = name.strip_prefix('_').map(str::to_owned);
        let (array, name) = (element.is_some(), element.unwrap_or(name));
        Some(Self { schema: schema.to_owned(), name, array, modifier: column.type_modifier })
    }

    fn built_in(built_in: &Type, modifier: i32) -> Self {
        // `int2vector` and `oidvector` have elements, but are types of their own name.
        let (mut array, mut name) = (false, built_in.name());
        if let Kind::Array(element) = built_in.kind()
            && name.starts_with('_')
        {
            (array, name) = (true, element.name());
        }
        Self { schema: String::new(), name: name.to_owned(), array, modifier }
    }

    /// The type as a column definition at the target names it.
    pub(super) fn sql(&self) -> String {
        let name = if !self.schema.is_empty() {
            Qualified { schema: &self.schema, name: &self.name }.to_string()
        } else {
            let modifier = self.sql_modifier();
            // Without a modifier the bare words mean `char(1)` and `bit(1)`.
            let special = self.name == "char" || (self.name == "bit" && modifier.is_empty());
            let name = if special { identifier(&self.name) } else { self.name.clone() };
            name + &modifier
        };
        if self.array { name + "[]" } else { name }
    }

    fn sql_modifier(&self) -> String {
        let modifier = self.modifier;
        match self.name.as_str() {
            _ if modifier < 0 => String::new(),
            "varchar" | "bpchar" => format!("({})", modifier - 4),
            "numeric" => {
                let (precision, scale) = numeric_modifier(modifier);
                format!("({precision},{scale})")
            }
            "bit" | "varbit" | "time" | "timetz" | "timestamp" | "timestamptz" => format!("({modifier})"),
            "interval" => match modifier & 0xFFFF {
                0xFFFF => String::new(),
                precision => format!("({precision})"),
            },
            _ => String::new(),
        }
    }

    /// Whether every value of this type arrives unchanged in the column, or is refused there by an error.
    /// What would be cut or rounded without one does not fit.
    pub(super) fn fits(&self, target: &TargetColumn) -> bool {
        let (element, is_array) = match (target.category, target.base_name.strip_prefix('_')) {
            ('A', Some(element)) => (element, true),
            _ => (target.base_name.as_str(), false),
        };
        if !is_array && target.category == 'S' && target.base_name != "name" {
            return true;
        }
        self.array == is_array && self.element_fits(element, target)
    }

    /// Whether the column refuses values that this type holds: shorter, or a smaller number.
    pub(super) fn is_wider_than(&self, target: &TargetColumn) -> bool {
        let size = |name: &str| match name {
            "int2" => 1,
            "int4" => 2,
            "int8" => 3,
            "numeric" => 4,
            _ => 0,
        };
        let name = target.base_name.as_str();
        let same = self.name == name || matches!((self.name.as_str(), name), ("text", "varchar" | "bpchar"));
        let shorter = same && target.modifier >= 0 && (self.modifier < 0 || self.modifier > target.modifier);
        shorter || (size(name) > 0 && size(&self.name) > size(name))
    }

    fn element_fits(&self, target: &str, column: &TargetColumn) -> bool {
        if self.name == target {
            return self.keeps_precision(column.modifier);
        }
        if !self.schema.is_empty() {
            return false;
        }
        match self.name.as_str() {
            "int2" => matches!(target, "int4" | "int8" | "numeric" | "float4" | "float8"),
            "int4" => matches!(target, "int2" | "int8" | "numeric" | "float8"),
            "int8" => matches!(target, "int2" | "int4" | "numeric"),
            "oid" => target == "int8",
            "float4" => matches!(target, "float8" | "numeric"),
            "float8" => target == "numeric",
            "date" => matches!(target, "timestamp" | "timestamptz"),
            "timestamp" => target == "timestamptz",
            "json" => target == "jsonb",
            "jsonb" => target == "json",
            "bit" => target == "varbit",
            "varbit" => target == "bit",
            "cidr" => target == "inet",
            "text" | "varchar" | "bpchar" | "name" => holds_text(target, column.category),
            _ => false,
        }
    }

    /// Assignment rounds to the column's scale or precision without a word.
    fn keeps_precision(&self, target: i32) -> bool {
        let digits = |modifier: i32| match self.name.as_str() {
            "numeric" => numeric_modifier(modifier).1,
            "interval" => modifier & 0xFFFF,
            _ => modifier,
        };
        match self.name.as_str() {
            "numeric" | "time" | "timetz" | "timestamp" | "timestamptz" | "interval" => {
                target < 0 || (self.modifier >= 0 && digits(self.modifier) <= digits(target))
            }
            _ => true,
        }
    }
}

/// Types whose input takes or refuses a text whole.
fn holds_text(target: &str, category: char) -> bool {
    matches!(target, "text" | "varchar" | "bpchar" | "json" | "jsonb" | "xml" | "uuid" | "inet" | "cidr")
        || category == 'E'
}

/// Precision and scale (signed since 15) of `numeric(p, s)`.
fn numeric_modifier(modifier: i32) -> (i32, i32) {
    let packed = modifier - 4;
    let scale = packed & 0x7FF;
    ((packed >> 16) & 0xFFFF, if scale > 1023 { scale - 2048 } else { scale })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation in a test is a failed test")]

    use super::*;

    fn source(oid: u32, modifier: i32, name: Option<(&str, &str)>) -> SourceType {
        SourceType::of(&ColumnRecord {
            name: "c".into(),
            type_oid: oid,
            type_modifier: modifier,
            type_name: name.map(|(schema, name)| (schema.into(), name.into())),
            key: false,
        })
        .unwrap()
    }

    fn target(base_name: &str, category: char, modifier: i32) -> TargetColumn {
        TargetColumn { base_name: base_name.into(), category, modifier, ..TargetColumn::default() }
    }

    #[test]
    fn type_names_carry_the_modifiers_of_the_source() {
        let name = |oid, modifier| source(oid, modifier, None).sql();
        assert_eq!(name(23, -1), "int4");
        assert_eq!(name(1043, 14), "varchar(10)");
        assert_eq!(name(1042, 7), "bpchar(3)");
        assert_eq!(name(1700, ((10 << 16) | 2) + 4), "numeric(10,2)");
        assert_eq!(name(1700, ((3 << 16) | (2048 - 2)) + 4), "numeric(3,-2)");
        assert_eq!(name(1560, -1), "\"bit\"");
        assert_eq!(name(1560, 3), "bit(3)");
        assert_eq!(name(18, -1), "\"char\"");
        assert_eq!(name(1184, 3), "timestamptz(3)");
        assert_eq!(name(1009, -1), "text[]");
        assert_eq!(name(1015, 14), "varchar(10)[]");
        assert_eq!(name(1186, (0x7FFF << 16) | 0xFFFF), "interval");
    }

    #[test]
    fn types_of_the_user_are_named_with_their_schema() {
        assert_eq!(source(90_000, -1, Some(("my app", "Mood"))).sql(), "\"my app\".\"Mood\"");
        assert_eq!(source(90_000, -1, Some(("app", "_mood"))).sql(), "\"app\".\"mood\"[]");
    }

    #[test]
    fn a_domain_is_named_by_its_base_type() {
        assert_eq!(source(90_000, -1, Some(("", "int4"))).sql(), "int4");
        assert!(source(90_000, -1, Some(("", "int4"))).fits(&target("int8", 'N', -1)));
    }

    #[test]
    fn a_wider_type_fits_and_a_narrower_integer_is_left_to_its_own_range_check() {
        assert!(source(23, -1, None).fits(&target("int8", 'N', -1)));
        assert!(source(20, -1, None).fits(&target("int4", 'N', -1)));
        assert!(source(1043, 14, None).fits(&target("varchar", 'S', 7)));
    }

    #[test]
    fn what_would_be_rounded_or_cut_without_an_error_does_not_fit() {
        assert!(!source(701, -1, None).fits(&target("float4", 'N', -1)));
        assert!(!source(20, -1, None).fits(&target("float8", 'N', -1)));
        assert!(!source(1184, -1, None).fits(&target("date", 'D', -1)));
        assert!(!source(1184, -1, None).fits(&target("timestamptz", 'D', 0)));
        assert!(!source(1700, -1, None).fits(&target("numeric", 'N', ((10 << 16) | 2) + 4)));
        assert!(source(1700, ((8 << 16) | 2) + 4, None).fits(&target("numeric", 'N', ((10 << 16) | 4) + 4)));
    }

    #[test]
    fn text_takes_everything_and_arrays_fit_arrays_only() {
        assert!(source(90_000, -1, Some(("app", "mood"))).fits(&target("text", 'S', -1)));
        assert!(!source(1007, -1, None).fits(&target("int4", 'N', -1)));
        assert!(source(1007, -1, None).fits(&target("_int8", 'A', -1)));
        assert!(!source(25, -1, None).fits(&target("int4", 'N', -1)));
    }
}
