(header module: (module) @name @module.leaf)
(data_type name: (name) @name) @type
(newtype name: (name) @name) @type
(type_synonym name: (name) @name) @type
(class name: (name) @name) @class
(data_constructor constructor: (prefix name: (constructor) @name)) @variant
(data_constructor constructor: (record name: (constructor) @name)) @variant
(field name: (field_name (variable) @name)) @field
(signature name: (variable) @name) @function.leaf
