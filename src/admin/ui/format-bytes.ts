const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']

/** Returns a size in the largest unit of which there is at least one, as the locale writes it. */
export function formatBytes(bytes: number): string {
  const step = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)))
  const options = { style: 'unit', unit: UNITS[step], maximumFractionDigits: step > 1 ? 1 : 0 } as const
  return new Intl.NumberFormat(undefined, options).format(bytes / 1_000 ** step)
}
