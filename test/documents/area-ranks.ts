/**
 * The areas of `src`, from the lowest rank up. An area may import those of lower ranks; areas of one rank must not import
 * each other. `part` colours them in `docs/images/ranks.svg`.
 */
export const AREA_RANKS: { part: 'ground' | 'people' | 'data' | 'products' | 'entry'; areas: string[] }[] = [
  { part: 'ground', areas: ['core', 'config'] },
  { part: 'ground', areas: ['storage'] },
  { part: 'ground', areas: ['tenancy'] },
  { part: 'ground', areas: ['jobs'] },
  { part: 'ground', areas: ['platform', 'tls'] },
  { part: 'ground', areas: ['limits'] },
  { part: 'ground', areas: ['backups'] },
  { part: 'people', areas: ['http'] },
  { part: 'people', areas: ['accounts'] },
  { part: 'people', areas: ['workspaces'] },
  { part: 'data', areas: ['blueprints'] },
  { part: 'data', areas: ['entities'] },
  { part: 'products', areas: ['content', 'events', 'connections', 'files', 'demo'] },
  { part: 'products', areas: ['lambdas', 'sites'] },
  { part: 'products', areas: ['integrations'] },
  { part: 'products', areas: ['plugins'] },
  { part: 'products', areas: ['ai', 'payments'] },
  { part: 'entry', areas: ['definitions'] },
  { part: 'entry', areas: ['operations'] },
  { part: 'entry', areas: ['app'] },
  { part: 'entry', areas: ['gateway', 'reader-thread'] },
  { part: 'entry', areas: ['admin', 'commands'] },
  { part: 'entry', areas: ['main'] },
]

const ROW = { top: 16, left: 70, width: 560, height: 28, distance: 34, gap: 8 }

// The admin page runs in the browser.
const drawnRanks = AREA_RANKS.map(({ part, areas }) => ({ part, areas: areas.filter((area) => area !== 'admin') }))

const drawRow = ({ part, areas }: (typeof AREA_RANKS)[number], row: number) => {
  const width = (ROW.width - ROW.gap * (areas.length - 1)) / areas.length
  const y = ROW.top + row * ROW.distance
  return areas.map((area, column) => {
    const x = ROW.left + column * (width + ROW.gap)
    const [left, middle] = [x, x + width / 2].map((value) => Number(value.toFixed(1)))
    const box = `<rect class="box ${part}" x="${left}" y="${y}" width="${Number(width.toFixed(1))}" height="${ROW.height}" rx="6"/>`
    return `  ${box}<text x="${middle}" y="${y + 19}">${area}</text>`
  })
}

/** Returns the picture of the ranks as SVG, the highest at the top. */
export function drawAreaRanks(): string {
  const height = 2 * ROW.top + AREA_RANKS.length * ROW.distance - (ROW.distance - ROW.height)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 650 ${height}" role="img" aria-labelledby="title description" font-family="system-ui, -apple-system, 'Segoe UI', sans-serif">
  <title id="title">The areas of the source and their ranks</title>
  <desc id="description">Areas in rows, from main at the top to core and config at the bottom. An area may import those in rows below it, never those above or beside it.</desc>
  <style>
    text { fill: #1f2933; font-size: 14px; text-anchor: middle }
    .note { fill: #52606d; font-size: 13px }
    .box { stroke: #9aa5b1 }
    .arrow { stroke: #7b8794; stroke-width: 1.5; fill: none; marker-end: url(#head) }
    .head { fill: #7b8794 }
    .entry { fill: #e8edf3 }
    .products { fill: #fde8d7 }
    .data { fill: #d9f2ee }
    .people { fill: #e6e3fb }
    .ground { fill: #fff3cf }
    @media (prefers-color-scheme: dark) {
      text { fill: #e4e7eb }
      .note { fill: #9aa5b1 }
      .box { stroke: #52606d }
      .entry { fill: #29323c }
      .products { fill: #4a2f1a }
      .data { fill: #0f3d37 }
      .people { fill: #2d2a55 }
      .ground { fill: #3d3117 }
    }
  </style>
  <defs>
    <marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker>
  </defs>
  <path class="arrow" d="M48 20V${height - 22}"/>
  <text class="note" transform="translate(32 ${height / 2}) rotate(-90)">imports only point down</text>
${drawnRanks.toReversed().flatMap(drawRow).join('\n')}
</svg>
`
}
