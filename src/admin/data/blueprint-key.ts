const MAX_CHARACTERS = 63

/** Returns a key of a blueprint made of its name: small letters without accents, digits and dashes. */
export const toBlueprintKey = (name: string) =>
  name
    .normalize('NFD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-+$/g, '')
    .slice(0, MAX_CHARACTERS)
