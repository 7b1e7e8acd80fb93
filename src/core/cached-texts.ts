/** Returns a function that remembers its texts. It is for few numbers: integers from 0 on. */
export function cacheTexts(toText: (n: number) => string): (n: number) => string {
  const texts: string[] = []
  return (n) => {
    texts[n] ??= toText(n)
    return texts[n]
  }
}
