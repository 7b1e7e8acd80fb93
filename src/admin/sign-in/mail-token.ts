/** Returns the token of a mailed link: in the fragment, or in the query, where websites take it. */
export const readMailToken = () => location.hash.slice(1) || new URLSearchParams(location.search).get('token') || ''
