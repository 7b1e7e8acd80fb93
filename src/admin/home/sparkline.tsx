import classes from './figure-row.module.css'

const [WIDTH, HEIGHT] = [100, 24]

/** How a number went from day to day. It says nothing that the row beside it does not, so readers skip it. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const highest = Math.max(...values)
  if (!(highest > 0)) return null
  const points = values.map((value, n) => {
    const x = (n / (values.length - 1)) * WIDTH
    return `${x.toFixed(1)},${(HEIGHT - 1 - (value / highest) * (HEIGHT - 3)).toFixed(1)}`
  })
  return (
    <svg className={classes.sparkline} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}`} />
      <polyline points={points.join(' ')} />
    </svg>
  )
}
