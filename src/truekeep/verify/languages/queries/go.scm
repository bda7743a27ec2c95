[(block) (func_literal)] @local

(function_declaration name: (identifier) @name) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @in
    (pointer_type (type_identifier) @in)
    (generic_type type: (type_identifier) @in)
    (pointer_type (generic_type type: (type_identifier) @in))]))
  name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(const_spec (identifier) @name) @constant
(var_spec (identifier) @name) @variable
(field_declaration (field_identifier) @name) @field
(method_elem name: (field_identifier) @name) @method.member
