[(attribute_item) (inner_attribute_item)] @attribute
(macro_invocation (token_tree) @unparsed)

(impl_item type: (_) @scope.name) @scope
(mod_item name: (identifier) @name) @module
(struct_item name: (type_identifier) @name) @struct
(enum_item name: (type_identifier) @name) @enum
(union_item name: (type_identifier) @name) @union
(trait_item name: (type_identifier) @name) @trait
(type_item name: (type_identifier) @name) @type
(associated_type name: (type_identifier) @name) @type
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(macro_definition name: (identifier) @name) @macro
(const_item name: (identifier) @name) @constant.always
(static_item name: (identifier) @name) @constant.always
(field_declaration name: (field_identifier) @name) @field
(enum_variant name: (identifier) @name) @variant
