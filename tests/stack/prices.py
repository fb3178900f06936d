"""Serves AWS's price list on loopback: GetProducts by usage type, with a few prices, in AWS's format.

Like the real list, it returns no rows for an unknown usage type.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class PriceList:
    def __init__(self, usd):
        self.requests = 0
        prices = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                prices.requests += 1
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                usage = body["Filters"][0]["Value"]
                rows = [row(usage, usd[usage])] if usage in usd else []
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
    unit = "GB-Mo" if "Volume" in usage else "Hrs"
    dimension = {"unit": unit, "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": f"{usd:.10f}"}}
    return json.dumps({
        "product": {"productFamily": "ML Instance", "attributes": {"usagetype": usage, "regionCode": "us-east-1"}},
        "serviceCode": "AmazonSageMaker",
        "terms": {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": dimension}}}},
    })
