import { providerFailed } from './failure'
import type { Provider } from './provider'

const notYet = async () => {
  throw providerFailed('paypal', 'It is not connected yet.')
}

export const paypal: Provider<'paypal'> = {
  createCheckout: notYet,
  cancel: notYet,
  reprice: notYet,
  fetchSubscription: notYet,
  verifyWebhook: notYet,
  parseEvent() {
    throw providerFailed('paypal', 'It is not connected yet.')
  },
}
