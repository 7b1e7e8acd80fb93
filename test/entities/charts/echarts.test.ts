import { beforeAll, describe, expect, test } from 'bun:test'
import { type EChartsOption, init } from 'echarts'
import { createThingsFixture } from '../fixtures'

/** Draws options by ECharts, and returns the texts and the number of shapes. */
function drawChart(options: EChartsOption) {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: 800, height: 500 })
  try {
    chart.setOption({ animation: false, ...options })
    const svg = chart.renderToSVGString()
    const texts = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text)
    return { svg, texts, shapes: [...svg.matchAll(/<path /g)].length }
  } finally {
    chart.dispose()
  }
}

const { as, path } = await createThingsFixture([
  { key: 'kind', type: 'string' },
  { key: 'size', type: 'integer' },
  { key: 'active', type: 'boolean' },
  { key: 'day', type: 'date' },
])
const getOptions = async (chart: string) => {
  const { status, body } = await as('user').get(`/blueprints/things/charts/${chart}`)
  expect([status, body.message]).toEqual([200, undefined])
  return body
}

beforeAll(async () => {
  const kinds = ['apple', 'apple', 'pear', 'plum', undefined]
  for (const [n, kind] of kinds.entries())
    await as('user').post(path, { kind, size: 100 * (n + 1), active: n > 2, day: `2026-01-0${n + 1}` })
})

describe.each(['line', 'bar', 'scatter', 'area'])('charts of type %s', (type) => {
  test('a chart with axes is drawn by ECharts with a category for each group', async () => {
    const options = await getOptions(`${type}?x=kind`)
    expect(options.xAxis.data).toEqual(['apple', 'pear', 'plum', 'Unknown'])
    expect(options.series).toHaveLength(1)
    expect(options.series[0].data).toEqual([2, 1, 1, 1])
    expect(options.tooltip).toBeObject()
    expect(options.toolbox.feature).toBeObject()
    const { svg, texts } = drawChart(options)
    expect(svg).toStartWith('<svg')
    expect(texts).toEqual(expect.arrayContaining(['apple', 'pear', 'plum', 'Unknown', '0', '2']))
  })

  test('a chart with axes has categories for numbers, dates and booleans, and shapes at them', async () => {
    for (const [x, names] of [
      ['size', ['100', '200', '300', '400', '500']],
      ['active', ['false', 'true']],
      ['day', ['0', '1', '4', '5', '6']],
      ['day&interval=week', ['2025-12-29', '2026-01-05']],
    ] as const) {
      const options = await getOptions(`${type}?x=${x}&active[$exists]=true`)
      const { texts, shapes } = drawChart(options)
      const wanted = x === 'day' ? options.xAxis.data.map(String) : names
      expect(texts.filter((text) => wanted.includes(text!)).length).toBeGreaterThanOrEqual(wanted.length)
      const empty = drawChart({ ...options, series: [{ ...options.series[0], data: [] }] })
      expect(shapes).toBeGreaterThan(empty.shapes)
    }
  })

  test('a chart with axes is drawn by ECharts even without data', async () => {
    const options = await getOptions(`${type}?x=kind&kind=none`)
    expect([options.xAxis.data, options.series[0].data]).toEqual([[], []])
    expect(drawChart(options).svg).toStartWith('<svg')
  })
})

test('an area chart is a filled line chart', async () => {
  const [line, area] = [await getOptions('line?x=kind'), await getOptions('area?x=kind')]
  expect([line.series[0].type, area.series[0].type]).toEqual(['line', 'line'])
  expect(drawChart(area).shapes).toBe(drawChart(line).shapes + 1)
})

test('the height of a bar is proportional to the sum of its group', async () => {
  const { svg } = drawChart(await getOptions('bar?x=kind&sum=size'))
  const heights = [...svg.matchAll(/<path d="M[\d.]+ ([\d.]+)l[\d.]+ 0l0 -([\d.]+)/g)].map(([, , height]) =>
    Number(height),
  )
  const [apple, pear, plum, unknown] = heights as [number, number, number, number]
  expect(heights).toHaveLength(4)
  expect([apple, pear, plum, unknown].map((height) => Math.round((300 * height) / apple))).toEqual([300, 300, 400, 500])
})

test('a pie chart has a named slice for each group, also for numbers and booleans', async () => {
  const options = await getOptions('pie?x=kind')
  expect(options.series[0].data).toEqual([
    { name: 'apple', value: 2 },
    { name: 'pear', value: 1 },
    { name: 'plum', value: 1 },
    { name: 'Unknown', value: 1 },
  ])
  expect(drawChart(options).texts).toEqual(expect.arrayContaining(['apple', 'pear', 'plum', 'Unknown']))
  expect(drawChart(await getOptions('pie?x=size')).texts).toEqual(expect.arrayContaining(['100', '300', '500']))
  const { series } = await getOptions('pie?x=active')
  expect(series[0].data.map(({ name }: { name: unknown }) => name)).toEqual([false, true])
  expect(drawChart(await getOptions('pie?x=active')).texts).toEqual(expect.arrayContaining(['false', 'true']))
  expect(drawChart(await getOptions('pie?x=kind&kind=none')).svg).toStartWith('<svg')
})
