import { providerFailed } from './failure'
import type { Provider } from './provider'

const notYet = async () => {
  throw providerFailed('paddle', 'It is not connected yet.')
}

export const paddle: Provider<'paddle'> = {
  createCheckout: notYet,
  cancel: notYet,
  reprice: notYet,
  fetchSubscription: notYet,
  verifyWebhook: notYet,
  parseEvent() {
    throw providerFailed('paddle', 'It is not connected yet.')
  },
}
