import { Elysia, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { ifMatchOf, sendPage, sendVersioned } from '../core/response-headers'
import { optionalBody } from '../core/shapes'
import { startCheckout } from './checkout/checkout'
import * as configuration from './configuration'
import { PaymentsConfiguration, PaymentsConfigurationChange } from './configuration-shapes'
import * as invoices from './invoices/invoices'
import { Cancellation, Checkout, Invoice, InvoiceList, NewCheckout, Subscription } from './shapes'
import { cancel } from './subscriptions/cancellation'

const errorResponses = {
  400: ProblemShape,
  404: ProblemShape,
  409: ProblemShape,
  500: ProblemShape,
  502: ProblemShape,
  503: ProblemShape,
}

const checkoutRoutes = new Elysia({ prefix: '/checkout', tags: ['payments'] })
  .use(guard('payments'))
  .post('/', ({ ctx, body, request }) => startCheckout(ctx, body, request), {
    can: 'user',
    addsData: true,
    body: NewCheckout,
    response: { 200: Checkout, ...errorResponses },
    detail: {
      operationId: 'startCheckout',
      summary: 'Start a checkout',
      description: "Returns a URL to redirect to, or a token for the provider's script.",
    },
  })
  .put('/:subscriptionId/cancel', ({ ctx, params, body }) => cancel(ctx, params.subscriptionId, body ?? undefined), {
    can: 'user',
    params: t.Object({ subscriptionId: t.String() }),
    body: optionalBody(Cancellation),
    response: { 200: Subscription, ...errorResponses },
    detail: { operationId: 'cancelCheckout', summary: 'Cancel a pending checkout' },
  })

const invoiceRoutes = new Elysia({ prefix: '/invoices', tags: ['payments'] })
  .use(guard('payments'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, invoices.list(ctx, query)), {
    can: 'user',
    query: InvoiceList,
    response: t.Array(Invoice),
    detail: { operationId: 'listInvoices', summary: 'List invoices' },
  })
  .get('/:invoiceId', ({ ctx, params }) => invoices.get(ctx, params.invoiceId), {
    can: 'user',
    params: t.Object({ invoiceId: t.String() }),
    response: { 200: Invoice, 404: ProblemShape },
    detail: { operationId: 'getInvoice', summary: 'Get an invoice' },
  })

const configurationRoutes = new Elysia({ prefix: '/payments/configuration', tags: ['payments'] })
  .use(guard('payments'))
  .get('/', ({ ctx, set }) => sendVersioned(set, configuration.get(ctx)), {
    can: 'privileged',
    response: PaymentsConfiguration,
    detail: { operationId: 'getPaymentsConfiguration', summary: 'Get the payments configuration' },
  })
  .put('/', ({ ctx, body, request, set }) => sendVersioned(set, configuration.change(ctx, body, ifMatchOf(request))), {
    can: 'privileged',
    body: PaymentsConfigurationChange,
    response: { 200: PaymentsConfiguration, 400: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'updatePaymentsConfiguration', summary: 'Update the payments configuration' },
  })

/** Checkouts, invoices, and the payments configuration. */
export const paymentRoutes = [checkoutRoutes, invoiceRoutes, configurationRoutes]
