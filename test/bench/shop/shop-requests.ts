// The ten kinds of requests of a small shop, in their proportions.
import type { SentRequest } from '../load'
import type { Random } from '../random'
import { CATEGORIES, categoryOf, customerId, makeOrder, PASSWORD, productId, STATUSES, wordsOf } from './shop-data'

export type ShopKind = { name: string; percent: number; draw(random: Random): SentRequest }
type ShopSize = { products: number; customers: number; orders: number }

const PRODUCTS = '/api/blueprints/products/entities'
const ORDERS = '/api/blueprints/orders/entities'
const get = (path: string): SentRequest => ({ method: 'GET', path })
const send = (method: 'POST' | 'PATCH', path: string, body: object): SentRequest => ({
  method,
  path,
  body: JSON.stringify(body),
})

export function createShopKinds({ products, customers, orders }: ShopSize, users: string[]): ShopKind[] {
  const product = (random: Random) => random.below(products)
  const customer = (random: Random) => customerId(random.below(customers))
  const status = (random: Random) => random.pick(STATUSES)
  const newest = '$sort=-created&$limit=20'
  return [
    {
      ...{ name: 'products of a category by price', percent: 35 },
      draw: (random) =>
        get(
          `${PRODUCTS}?category=${categoryOf(random.below(CATEGORIES))}&active=true&$sort=${random.pick(['', '-'])}price&$limit=20`,
        ),
    },
    { name: 'product by id', percent: 25, draw: (random) => get(`${PRODUCTS}/${productId(product(random))}`) },
    {
      ...{ name: 'search of products', percent: 8 },
      draw: (random) => get(`${PRODUCTS}?$q=${wordsOf(product(random)).slice(0, 2).join('+')}&$limit=20`),
    },
    {
      ...{ name: 'orders counted', percent: 4 },
      draw: (random) =>
        get(`${ORDERS}?status=${status(random)}&total[$gte]=${random.below(40_000)}&${newest}&$count=true`),
    },
    {
      ...{ name: 'orders of a customer', percent: 8 },
      draw: (random) => get(`${ORDERS}?customer=${customer(random)}&${newest}`),
    },
    {
      ...{ name: 'orders with their products', percent: 5 },
      draw: (random) => get(`${ORDERS}?customer=${customer(random)}&${newest}&$populate=product`),
    },
    {
      ...{ name: 'create an order', percent: 5 },
      draw: (random) => send('POST', ORDERS, makeOrder(orders + random.below(1e6), customers, products)),
    },
    {
      ...{ name: 'change the stock', percent: 5 },
      draw: (random) => send('PATCH', `${PRODUCTS}/${productId(product(random))}`, { stock: random.below(500) }),
    },
    {
      ...{ name: 'sign-in', percent: 1 },
      draw: (random) =>
        send('POST', '/api/signin', { username: random.pick(users), password: PASSWORD, authType: 'oauth' }),
    },
    {
      ...{ name: 'chart of a product', percent: 4 },
      draw: (random) =>
        get(`/api/blueprints/orders/charts/sum?sum=total&groupBy=status&product=${productId(product(random))}`),
    },
  ]
}
