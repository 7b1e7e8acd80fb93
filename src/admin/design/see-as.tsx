/** Nothing yet. */
export const SeeAs = () => null
