[(function_definition) (do_statement) (if_statement) (for_statement) (while_statement) (repeat_statement)] @local

(function_declaration name: (_) @name) @function
(assignment_statement (variable_list . name: (_) @name) (expression_list . value: (function_definition))) @function
(assignment_statement (variable_list name: [(identifier) (dot_index_expression)] @name)) @variable
