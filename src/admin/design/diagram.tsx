/** Nothing yet. */
export const Diagram = () => null
