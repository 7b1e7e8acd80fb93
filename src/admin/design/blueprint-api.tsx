/** Nothing yet. */
export const BlueprintApi = () => null
