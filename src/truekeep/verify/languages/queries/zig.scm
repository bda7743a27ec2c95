(block) @local
[(struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration)] @open

(function_declaration name: (identifier) @name) @function
(variable_declaration . "pub"? . (identifier) @name) @constant
(container_field name: (identifier) @name) @field
