// A small shop: products in categories, customers, and their orders.

export const CATEGORIES = 40
export const COLORS = ['red', 'blue', 'green', 'black', 'white', 'yellow', 'grey', 'brown']
const THINGS = ['shirt', 'lamp', 'chair', 'bottle', 'bag', 'book', 'cup', 'knife', 'table', 'watch']
const MATERIALS = ['cotton', 'steel', 'oak', 'glass', 'leather', 'paper', 'linen', 'copper', 'wool']
export const STATUSES = ['open', 'paid', 'sent', 'returned']
export const PASSWORD = 'correct horse battery'

/** Ten orders for each product and each customer. */
export const countShop = (rows: number) => ({
  products: Math.ceil(rows / 10),
  customers: Math.ceil(rows / 10),
  orders: rows,
})

export const productId = (n: number) => `product-${n}`
export const customerId = (n: number) => `customer-${n}`
export const categoryOf = (n: number) => `category-${n % CATEGORIES}`
export const wordsOf = (n: number) =>
  [COLORS[n % COLORS.length]!, MATERIALS[n % MATERIALS.length]!, THINGS[Math.floor(n / 7) % THINGS.length]!] as const

const description = 'It is made to last, comes in a box of recycled paper, and can be sent back within thirty days. '
export const makeProduct = (n: number) => ({
  title: `${wordsOf(n).join(' ')} ${n}`,
  category: categoryOf(n),
  price: 100 + ((n * 7_919) % 9_973),
  stock: (n * 31) % 500,
  active: n % 20 > 0,
  description: description.repeat(3),
})
export const makeCustomer = (n: number) => ({
  name: `Customer ${n}`,
  email: `customer${n}@example.com`,
  city: `City ${n % 200}`,
})
export const makeOrder = (n: number, customers: number, products: number) => ({
  customer: customerId((n * 7) % customers),
  product: productId((n * 13) % products),
  quantity: 1 + (n % 4),
  total: 100 + ((n * 104_729) % 39_989),
  status: STATUSES[(n * 11 + Math.floor(n / 97)) % STATUSES.length]!,
})

const permissions = ['create', 'read', 'update', 'delete'].map((operation) => ({
  operation,
  scope: 'tenant',
  roleBased: ['user'],
}))
export const shopBlueprints = [
  {
    ...{ key: 'products', name: 'Products', permissions },
    fields: [
      { key: 'title', type: 'string', required: true },
      { key: 'category', type: 'string' },
      { key: 'price', type: 'integer' },
      { key: 'stock', type: 'integer' },
      { key: 'active', type: 'boolean' },
      { key: 'description', type: 'text' },
    ],
  },
  {
    ...{ key: 'customers', name: 'Customers', permissions },
    fields: [
      { key: 'name', type: 'string' },
      { key: 'email', type: 'email' },
      { key: 'city', type: 'string' },
    ],
  },
  {
    ...{ key: 'orders', name: 'Orders', permissions },
    fields: [
      { key: 'customer', type: 'relation', target: 'customers' },
      { key: 'product', type: 'relation', target: 'products' },
      { key: 'quantity', type: 'integer' },
      { key: 'total', type: 'integer' },
      { key: 'status', type: 'string' },
    ],
  },
]
