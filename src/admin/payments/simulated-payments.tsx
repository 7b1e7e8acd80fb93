import { Alert, Table, Text, Title } from '@mantine/core'
import { useMemo } from 'react'
import type { PricePreview } from '../api/schema'
import { Chart } from '../ui/chart'
import { formatMoney, Money } from '../ui/money'
import { describeAmount, formatDay } from './price-words'

type Payment = PricePreview['payments'][number]
const CHART_HEIGHT_PX = 180

/** Returns why a payment is as high as it is. */
function describeReason(
  { amount, reason }: Payment,
  { basePrice, currency, couponBenefitEndsAt }: PricePreview,
  code = '',
) {
  if (reason === 'free') return 'Free: no provider takes part'
  if (reason === 'price') return 'Price of the plan'
  const saved = formatMoney((basePrice ?? 0) - amount, currency)
  return `${saved} less with ${code}${couponBenefitEndsAt ? ` until ${formatDay(couponBenefitEndsAt)}` : ''}`
}

/** Returns the result in one sentence. */
function summarize({ payments, total, currency, billingCycle, basePrice, isFree }: PricePreview): string {
  const [first] = payments
  if (isFree || !first) return 'The customer pays nothing.'
  const start = describeAmount(first.amount, currency, billingCycle)
  const change = payments.find(({ amount }) => amount !== first.amount)
  const then = change ? `, and ${formatMoney(change.amount, currency)} from ${formatDay(change.date)}` : ''
  const lasting =
    !change && basePrice !== null && first.amount < basePrice ? ' for as long as the subscription lasts' : ''
  return `The customer pays ${start}${then}${lasting}: ${formatMoney(total, currency)} in ${payments.length} payments.`
}

function useChart({ payments, currency }: PricePreview) {
  return useMemo(
    () => ({
      grid: { left: 8, right: 8, top: 16, bottom: 8, containLabel: true },
      tooltip: { trigger: 'axis', valueFormatter: (value: number) => formatMoney(value, currency) },
      xAxis: { type: 'category', data: payments.map(({ date }) => formatDay(date)) },
      yAxis: { type: 'value', min: 0 },
      series: [
        {
          type: 'bar',
          barMaxWidth: 28,
          name: 'Payment',
          data: payments.map(({ amount, reason }) => ({
            value: amount,
            itemStyle: reason === 'coupon' ? { opacity: 0.55 } : {},
          })),
        },
      ],
    }),
    [payments, currency],
  )
}

/** The payments of a preview: a sentence, a chart and a table with the reasons. */
export function SimulatedPayments({ preview, code }: { preview: PricePreview; code?: string }) {
  const option = useChart(preview)
  const sentence = summarize(preview)
  return (
    <>
      <Title order={2} mb="xs">
        {sentence}
      </Title>
      {preview.isFree && (preview.basePrice ?? 0) > 0 && (
        <Alert variant="light" color="yellow" mb="md">
          The first payment is nothing, so the subscription begins without a provider. Nobody pays later either, also
          when the discount ends.
        </Alert>
      )}
      {!preview.isFree && <Chart label={sentence} height={CHART_HEIGHT_PX} option={option} />}
      <Table mt="md" aria-label="Payments">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Day</Table.Th>
            <Table.Th ta="right">Amount</Table.Th>
            <Table.Th>Why</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {preview.payments.map((payment) => (
            <Table.Tr key={payment.date}>
              <Table.Td>{formatDay(payment.date)}</Table.Td>
              <Table.Td ta="right">
                <Money amount={payment.amount} currency={preview.currency} />
              </Table.Td>
              <Table.Td>
                <Text size="sm" c={payment.reason === 'price' ? 'dimmed' : undefined}>
                  {describeReason(payment, preview, code)}
                </Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  )
}
