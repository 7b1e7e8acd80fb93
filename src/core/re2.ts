/** Regular expressions whose time is in proportion to the text (RE2): loaded when the first is compiled, for it is a large one. */
export const loadRe2 = () => (require('re2js') as typeof import('re2js')).RE2JS
