import { Counter, Gauge, type Metric, Registry } from 'prom-client'
import type { Histogram as RecordedHistogram } from '../../core/histogram'

/** All metrics of this process. Their values are read when they are asked for. */
export const metricRegistry = new Registry()
const registers = [metricRegistry]

type Labels = Record<string, string | number>
type Values = Iterable<[labels: Labels, value: number]>

/**
 * Defines a number that goes up and down. `read` returns its values by their labels, or one without labels; those of
 * several server processes are added, or become one by `aggregator`.
 */
export function defineGauge(
  name: string,
  help: string,
  labelNames: string[],
  read: () => Values | number | undefined | Promise<Values | number | undefined>,
  aggregator: 'sum' | 'max' | 'min' = 'sum',
) {
  new Gauge({
    ...{ name, help, labelNames, registers, aggregator },
    async collect() {
      this.reset()
      for (const [labels, value] of toValues(await read())) this.set(labels, value)
    },
  })
}

/** Defines a number that only grows while the process runs. */
export function defineCounter(name: string, help: string, labelNames: string[], read: () => Values | number) {
  new Counter({
    ...{ name, help, labelNames, registers },
    collect() {
      this.reset()
      for (const [labels, value] of toValues(read())) this.inc(labels, value)
    },
  })
}

const toValues = (values: Values | number | undefined): Values =>
  values === undefined ? [] : typeof values === 'number' ? [[{}, values]] : values

/**
 * Defines a histogram whose values are recorded elsewhere: prom-client only has histograms that it fills itself, which
 * takes longer at each request. Its registry asks a metric for its values by `get`.
 */
export function defineHistogram(
  name: string,
  help: string,
  labelNames: string[],
  read: () => Iterable<[labels: Labels, recorded: RecordedHistogram]>,
) {
  const get = async () => ({
    ...{ name, help, type: 'histogram', aggregator: 'sum', labelNames },
    values: [...read()].flatMap(([labels, recorded]) => toSeries(name, labels, recorded)),
  })
  metricRegistry.registerMetric({ name, help, get } as unknown as Metric)
}

function toSeries(name: string, labels: Labels, { bounds, counts, sum }: RecordedHistogram) {
  let total = 0
  const buckets = [...bounds, '+Inf'].map((le, index) => {
    total += counts[index]!
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ]
}
