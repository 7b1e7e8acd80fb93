/** Names are compared without regard to case, width, composition, and invisible characters. */
export const normalizeForLookup = (name: string) => stripInvisible(stripInvisible(name).normalize('NFKC')).toLowerCase()

const stripInvisible = (text: string) => text.replace(/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\u2800]/gu, '')
