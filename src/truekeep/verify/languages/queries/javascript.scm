; inherits: ecmascript
(field_definition property: [(property_identifier) (private_property_identifier)] @name) @field
(field_definition property: (string (string_fragment) @name)) @field
