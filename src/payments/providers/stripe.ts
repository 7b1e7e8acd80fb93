import { providerFailed } from './failure'
import type { Provider } from './provider'

const notYet = async () => {
  throw providerFailed('stripe', 'It is not connected yet.')
}

export const stripe: Provider<'stripe'> = {
  createCheckout: notYet,
  cancel: notYet,
  reprice: notYet,
  fetchSubscription: notYet,
  verifyWebhook: notYet,
  parseEvent() {
    throw providerFailed('stripe', 'It is not connected yet.')
  },
}
