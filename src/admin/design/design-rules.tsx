/** Nothing yet. */
export const DesignRules = () => null
