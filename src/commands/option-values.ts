/** Collects the values of an option that may be repeated. */
export const collectValues = (value: string, before: string[] = []) => [...before, value]
