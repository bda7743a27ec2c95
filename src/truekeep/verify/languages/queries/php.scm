[(compound_statement) (anonymous_function) (arrow_function)] @local
(anonymous_class) @open
(attribute_list) @attribute

(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @interface
(trait_declaration name: (name) @name) @trait
(enum_declaration name: (name) @name) @enum
(enum_case name: (name) @name) @variant
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @method
(property_promotion_parameter name: (variable_name (name) @name)) @field.promoted
(property_declaration (property_element name: (variable_name (name) @name))) @field
(const_declaration (const_element . (name) @name)) @constant
(function_call_expression
  function: [(name) (qualified_name)] @_define
  arguments: (arguments . (argument [
    (string (string_content) @name)
    (encapsed_string . (string_content) @name .)]))
  (#match? @_define "^\\\\?define$")) @constant.global
