; inherits: c
(friend_declaration) @local
(lambda_expression) @local
(class_specifier name: (_) @name body: (_)) @class
(namespace_definition name: (_) @name) @namespace
(alias_declaration name: (type_identifier) @name) @type
(concept_definition name: (identifier) @name) @type
