import { Anchor, Button, Table, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import type { Invoice } from '../api/schema'
import { Details } from '../ui/details'
import { Money } from '../ui/money'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { ShortId } from '../ui/short-id'
import { SidePanel } from '../ui/side-panel'
import { InvoiceState } from './invoice-states'
import { useListNavigation } from './list-navigation'
import { PayerLink } from './payer'
import classes from './payments.module.css'
import { formatDay } from './price-words'
import { findProvider } from './providers'

/** What an invoice charges for, line by line, with the sum. */
function InvoiceLines({ items, amount, currency }: Invoice) {
  if (!items.length) return null
  return (
    <section className={classes.section}>
      <Title order={3}>Lines</Title>
      <Table aria-label="Lines">
        <Table.Tbody>
          {items.map((item, index) => (
            <Table.Tr key={index}>
              <Table.Td>
                {item.quantity !== 1 && `${item.quantity} × `}
                {item.description || 'Without a description'}
              </Table.Td>
              <Table.Td ta="right" className={classes.amount}>
                <Money amount={item.amount} currency={currency} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
        <Table.Tfoot>
          <Table.Tr>
            <Table.Th>Sum</Table.Th>
            <Table.Th ta="right" className={classes.amount}>
              <Money amount={amount} currency={currency} />
            </Table.Th>
          </Table.Tr>
        </Table.Tfoot>
      </Table>
    </section>
  )
}

/** One invoice beside the list. */
export function InvoicePanel() {
  const { close } = useListNavigation('/payments/invoices')
  const { invoice: invoiceId = '' } = useParams({ strict: false }) as { invoice?: string }
  const { data: invoice, error } = useQuery({
    queryKey: ['payments', 'invoices', 'one', invoiceId],
    queryFn: () => fetchData(api.GET('/api/invoices/{invoiceId}', { params: { path: { invoiceId } } })),
  })
  const provider = findProvider(invoice?.providerKind)?.label ?? invoice?.providerKind
  const isWebAddress = /^https:\/\//i.test(invoice?.invoiceUrl ?? '')
  return (
    <SidePanel
      title="Invoice"
      onClose={close}
      footer={
        isWebAddress && (
          <Button component="a" href={invoice?.invoiceUrl ?? ''} target="_blank" rel="noreferrer" variant="default">
            Open at {provider}
          </Button>
        )
      }
    >
      {error && <ProblemMessage error={error} />}
      {invoice && (
        <>
          <Details
            items={[
              ['State', <InvoiceState key="state" status={invoice.status} />],
              ['Amount', <Money key="amount" amount={invoice.amount} currency={invoice.currency} />],
              ['Customer', <PayerLink key="payer" payer={invoice} />],
              [
                'Subscription',
                <Anchor
                  key="subscription"
                  component={Link}
                  to={`/payments/subscriptions/${invoice.subscriptionId}` as never}
                  size="sm"
                >
                  Show the subscription
                </Anchor>,
              ],
              [
                'Period',
                invoice.periodStart &&
                  invoice.periodEnd &&
                  `${formatDay(invoice.periodStart)} to ${formatDay(invoice.periodEnd)}`,
              ],
              ['Paid', invoice.paidAt && <RelativeTime key="paid" time={invoice.paidAt} />],
              ['Created', <RelativeTime key="created" time={invoice.created} />],
              [`ID at ${provider}`, <ShortId key="external" id={invoice.externalInvoiceId} />],
              ['ID', <ShortId key="id" id={invoice._id} />],
            ]}
          />
          <InvoiceLines {...invoice} />
        </>
      )}
    </SidePanel>
  )
}
