/** Returns a function that caches its texts, for a small range of integers from 0 on. */
export function cacheTexts(toText: (n: number) => string): (n: number) => string {
  const texts: string[] = []
  return (n) => {
    texts[n] ??= toText(n)
    return texts[n]
  }
}
