"""AWS's price list on loopback, with a few prices: GetProducts by usage type, in its shape.

For tests. Whatever is not in it has no price there, as in the real list.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class PriceList:
    def __init__(self, usd_an_hour):
        self.asked = 0
        prices = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                prices.asked += 1
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                usage = body["Filters"][0]["Value"]
                rows = [row(usage, usd_an_hour[usage])] if usage in usd_an_hour else []
                answer = json.dumps({"FormatVersion": "aws_v1", "PriceList": rows}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/x-amz-json-1.1")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def row(usage, usd):
    dimension = {"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": f"{usd:.10f}"}}
    return json.dumps({
        "product": {"productFamily": "ML Instance", "attributes": {"usagetype": usage, "regionCode": "us-east-1"}},
        "serviceCode": "AmazonSageMaker",
        "terms": {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": dimension}}}},
    })
