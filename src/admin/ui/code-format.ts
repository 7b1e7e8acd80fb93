const MAX_LENGTH = 200_000

const count = (text: string, part: RegExp) => text.match(part)?.length ?? 0

/**
 * Returns TypeScript in the usual form, with the quotes and semicolons that it has for the most part. Code that cannot be
 * read stays as it is. What formats it is loaded when it is first needed.
 */
export async function formatTypeScript(code: string): Promise<string> {
  if (code.length > MAX_LENGTH) return code
  const [{ format }, ...plugins] = await Promise.all([
    import('prettier/standalone'),
    import('prettier/plugins/babel'),
    import('prettier/plugins/estree'),
  ])
  const lines = count(code, /[^\s{},;]\s*$/gm)
  return format(code, {
    ...{ parser: 'babel-ts', plugins, printWidth: 100 },
    singleQuote: count(code, /'/g) >= count(code, /"/g),
    semi: count(code, /;\s*$/gm) > lines,
  }).catch(() => code)
}
