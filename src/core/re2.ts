/**
 * Returns the regular expressions of RE2, whose time is linear in the text. The library is large, so it is loaded on
 * first use.
 */
export const loadRe2 = () => (require('re2js') as typeof import('re2js')).RE2JS
